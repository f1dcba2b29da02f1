"""Errors of what Windowpane reaches over the network or loads: the web, embeddings, another server."""

from windowpane.errors.base import WindowpaneError


class FetchError(WindowpaneError):
    """A page or a web search failed."""

    code = "fetch_error"


class FetchRefusedError(FetchError):
    """The address is one that is never fetched."""

    code = "fetch_refused"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url} is not fetched: {why}")
        self.url = url


class FetchFailedError(FetchError):
    """The page did not come, or it holds nothing to read."""

    code = "fetch_failed"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url} could not be read: {why}")
        self.url = url


class SearchEngineError(FetchError):
    """The search engine gave no results that can be used."""

    code = "search_engine_error"

    def __init__(self, engine: str, why: str) -> None:
        super().__init__(f"search with {engine} failed: {why}")
        self.engine = engine
        self.why = why


class EmbedderError(WindowpaneError):
    """Embeddings are not available."""

    code = "embedder_error"


class WeightsMissingError(EmbedderError):
    """No weights of the local model are installed."""

    code = "weights_missing"

    def __init__(self, looked_in: str) -> None:
        super().__init__(f"the weights of the local model are not installed (looked in {looked_in})")
        self.looked_in = looked_in


class WeightsDamagedError(EmbedderError):
    """The weights are there and cannot be used."""

    code = "weights_damaged"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"the weights in {where} are damaged: {why}")
        self.where = where


class EndpointError(EmbedderError):
    """The embeddings endpoint did not answer as it should."""

    code = "embedding_endpoint"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"the embeddings endpoint {url} failed: {why}")
        self.url = url


class ServerError(WindowpaneError):
    """A Windowpane server refused or did not answer."""

    code = "server_error"


class RemoteError(ServerError):
    """The server refused. `remote_code` is the code of the error that it had."""

    code = "remote_error"

    def __init__(self, status: int, remote_code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.remote_code = remote_code


class UnreachableError(ServerError):
    """The server does not answer."""

    code = "unreachable"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"no server answers at {url}: {why}; `windowpane serve` starts one")
        self.url = url
