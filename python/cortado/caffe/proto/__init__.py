"""Caffe's messages: caffe_pb2, which protoc makes of src/cortado/proto/caffe.proto."""
