"""Export: a trained network as the files of a bundle."""

from __future__ import annotations

import io
import logging
import warnings
from typing import Final

import msgspec
import onnx
import safetensors.numpy
import torch
import yaml

from dagsail.documents import API_VERSION, Metadata, Strict
from dagsail.domain.errors import FormatError
from dagsail.policies.neural import bundle as bundles
from dagsail.policies.neural.bundle import Description, Spec
from dagsail.policies.neural.model import INPUTS, OUTPUTS
from dagsail.policies.neural.network import Network, example
from dagsail.policies.scoring.weights import write_weights
from dagsail.training.learner import Arrays, Learner, network_of
from dagsail.training.settings import NetworkSettings

_OPSET: Final = 20


def bundle_files(
    learner: Learner, settings: NetworkSettings, name: str, spec: Spec, card: str
) -> dict[str, bytes]:
    """The contents of a bundle's files, by name.

    Args:
        learner: to export.
        settings: widths of its network.
        name: of the bundle.
        spec: what the network was made for.
        card: evaluation card, Markdown.
    """
    description = Description(API_VERSION, "Bundle", Metadata(name=name), spec)
    return {
        bundles.DESCRIPTION: _yaml(description),
        bundles.MODEL: onnx_bytes(network_of(learner.network, settings)),
        bundles.WEIGHTS: safetensors.numpy.save(learner.network),
        bundles.CANDIDATES: write_weights(learner.weights, name).encode(),
        bundles.CARD: card.encode(),
    }


def _yaml(document: Strict) -> bytes:
    plain = msgspec.to_builtins(document)
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).encode()


def onnx_bytes(network: Network) -> bytes:
    """The network in ONNX, for any number of observations at once."""
    network = network.eval()
    batch = torch.export.Dim("batch", min=1, max=65536)
    inputs = example(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        program = torch.onnx.export(
            network,
            kwargs=inputs,
            input_names=list(INPUTS),
            output_names=list(OUTPUTS),
            dynamic_shapes={key: {0: batch} for key in INPUTS},
            opset_version=_OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    assert program is not None
    stream = io.BytesIO()
    onnx.save_model(program.model_proto, stream)
    return stream.getvalue()


def read_network(content: bytes, settings: NetworkSettings, source: str) -> Arrays:
    """The weights of a bundle's network, by parameter.

    Raises:
        FormatError: if they are not weights of a network of these sizes.
    """
    try:
        state = safetensors.numpy.load(content)
        network_of(state, settings)
    except (safetensors.SafetensorError, KeyError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FormatError(f"{source}: holds no weights of such a network ({reason})") from None
    return state
