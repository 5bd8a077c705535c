// Runs ONNX models by the package onnxruntime-node, which require() must find (NODE_PATH):
//   node run_onnx.js FOLDER...       FOLDER/back.onnx on FOLDER/input.safetensors; writes FOLDER/onnxruntime.safetensors
const fs = require("fs");
const ort = require("onnxruntime-node");

// Tensors of 32-bit floats: name -> ort.Tensor.
function read(path) {
  const data = fs.readFileSync(path);
  const size = Number(data.readBigUInt64LE(0));
  const header = JSON.parse(data.subarray(8, 8 + size).toString());
  const tensors = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const [begin, end] = entry.data_offsets.map((offset) => 8 + size + offset);
    const bytes = Uint8Array.from(data.subarray(begin, end));  // aligned
    tensors[name] = new ort.Tensor("float32", new Float32Array(bytes.buffer), entry.shape);
  }
  return tensors;
}

function write(path, tensors) {
  const header = {}, blocks = [];
  let at = 0;
  for (const [name, tensor] of Object.entries(tensors)) {
    const bytes = Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
    header[name] = {dtype: "F32", shape: tensor.dims, data_offsets: [at, at + bytes.length]};
    blocks.push(bytes);
    at += bytes.length;
  }
  const text = Buffer.from(JSON.stringify(header)), size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  fs.writeFileSync(path, Buffer.concat([size, text, ...blocks]));
}

async function main() {
  for (const folder of process.argv.slice(2)) {
    const session = await ort.InferenceSession.create(`${folder}/back.onnx`, {intraOpNumThreads: 2});
    const inputs = read(`${folder}/input.safetensors`), wanted = {};
    for (const name of session.inputNames) wanted[name] = inputs[name];
    write(`${folder}/onnxruntime.safetensors`, await session.run(wanted));
  }
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
