"""The receiver of OpenTelemetry's spans."""
