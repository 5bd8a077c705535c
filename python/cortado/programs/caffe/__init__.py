"""Makes `import caffe` that of cortado.caffe, for programs that are run with this file's folder's folder in PYTHONPATH."""

import cortado.caffe

cortado.caffe.as_caffe()
