"""The network that decides: how it is built (torch) and how it is asked (ONNX Runtime)."""
