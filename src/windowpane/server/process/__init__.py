"""The server as a process: settings, sockets, workers, logs, tracing."""
