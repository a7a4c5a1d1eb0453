# Three dense layers in ONNX Runtime, forward, on the processor.
#   batchstep run examples/own/onnx_mlp.py --batch-size 1..=70
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sizes = [192, 512, 512, 512]
nodes, weights, name = [], [], "x"
for layer, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
    weights.append(numpy_helper.from_array(np.random.rand(rows, columns).astype("float32") - 0.5, f"w{layer}"))
    nodes.append(helper.make_node("MatMul", [name, f"w{layer}"], [f"y{layer}"]))
    nodes.append(helper.make_node("Relu", [f"y{layer}"], [f"z{layer}"]))
    name = f"z{layer}"
value = lambda name, width: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])
graph = helper.make_graph(nodes, "mlp", [value("x", sizes[0])], [value(name, sizes[-1])], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def step(batch_size):
    x = np.random.rand(batch_size, sizes[0]).astype("float32")
    return lambda: session.run(None, {"x": x})
