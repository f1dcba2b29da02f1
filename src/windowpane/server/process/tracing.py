"""Send spans somewhere, when the environment says where.

Spans are made in any case and cost next to nothing as long as no exporter collects them (`windowpane.telemetry`). With
`OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_TRACES_EXPORTER=otlp` they are sent over OTLP, as the `OTEL_…` variables say,
which needs the packages of the extra `otel`. A process whose spans are collected already is left as it is.
"""

import os
from importlib.util import find_spec

from opentelemetry import trace

from windowpane.errors import InvalidSettingError


def configure_tracing() -> None:
    """Collect and send spans, if the environment asks for it.

    Raises:
        InvalidSettingError: it asks for what is not installed or not known.
    """
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "otlp" if _endpoint() else "none")
    if exporter == "none" or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return
    if exporter not in ("otlp", "console"):
        raise InvalidSettingError("OTEL_TRACES_EXPORTER", f"otlp, console or none, not {exporter!r}")
    if find_spec("opentelemetry.sdk") is None or find_spec("opentelemetry.exporter") is None:
        raise InvalidSettingError(
            "OTEL_TRACES_EXPORTER", "spans cannot be sent without the packages of `pip install windowpane[otel]`"
        )
    _collect(exporter)


def _endpoint() -> str | None:
    return os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")


def _collect(exporter: str) -> None:
    # Not at the top: these belong to the extra, and only who sends spans needs them.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "windowpane")})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(
        BatchSpanProcessor(ConsoleSpanExporter() if exporter == "console" else OTLPSpanExporter())
    )
    trace.set_tracer_provider(provider)
