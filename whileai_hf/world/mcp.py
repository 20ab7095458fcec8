"""MCP servers as tools: read what a server offers, and let it answer instead of the mock world.

Reading the list is enough to simulate: the world answers calls from the schemas, and nothing of the server is
touched. To let the server answer, pass its `call` as `execute=`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from whileai_hf import defaults, extras
from whileai_hf.errors import InputError
from whileai_hf.world.tools import Tool, read_tools


class McpServer:
    """A connection to an MCP server, open inside `with`.

    Args:
        server: The command that starts it, as a list (`["python", "server.py"]`), or the URL of one that runs.
        env: Environment of the command, beside the little that is passed on by default.
        timeout: Seconds one request may take.

    Attributes:
        tools: What the server offers, to be passed as `tools=`.

    Raises:
        MissingExtra: The package `mcp` is not installed.
        InputError: The server does not start or does not answer.

    Example:
        >>> with McpServer(["python", "server.py"]) as server:  # doctest: +SKIP
        ...     data = wai.simulate(agent, tools=server.tools)                       # the mock world answers
        ...     real = wai.simulate(agent, tools=server.tools, execute=server.call)  # the server answers
    """

    def __init__(
        self, server: str | Sequence[str], *, env: Mapping[str, str] | None = None,
        timeout: float = defaults.TOOL_TIMEOUT,
    ) -> None:  # fmt: skip
        if not server or not (isinstance(server, str) or all(isinstance(s, str) for s in server)):
            raise InputError(
                f"server must be a command as a list or a URL; got {server!r}. "
                'Write ["python", "server.py"] or "http://localhost:8000/mcp".'
            )
        if isinstance(server, str) and "://" not in server:
            raise InputError(
                f"a server given as text must be a URL; got {server!r}. Write a command as a list: "
                f"{server.split()!r}."
            )
        self.server, self.env, self.timeout = server, dict(env or {}) or None, timeout
        self.tools: list[Tool] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._leave: asyncio.Event | None = None
        self._serving: Future[None] | None = None
        self._client: Any = None

    def __enter__(self) -> McpServer:
        mcp = extras.require("mcp", "mcp")
        self._thread.start()
        ready: Future[list[Any]] = Future()
        self._serving = asyncio.run_coroutine_threadsafe(self._serve(mcp, ready), self._loop)
        try:
            self.tools = read_tools(ready.result(self.timeout))
        except BaseException as error:
            self._stop()
            if isinstance(error, InputError) or not isinstance(error, Exception):
                raise
            raise InputError(
                f"an MCP server must start and list its tools; {self.server!r} did not: "
                f"{type(error).__name__}: {_innermost(error)}. Start it by hand to see why."
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    async def _serve(self, mcp: Any, ready: Future[list[Any]]) -> None:
        """Hold the connection open until it is left; one task opens and closes it."""
        self._leave = asyncio.Event()
        try:
            target = self.server
            if not isinstance(target, str):
                command, *args = target
                target = mcp.stdio_client(
                    mcp.StdioServerParameters(command=command, args=args, env=self.env)
                )
            async with mcp.Client(target) as client:
                self._client = client
                ready.set_result(await _listed(client))
                await self._leave.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            elif not isinstance(error, Exception):
                raise

    def _stop(self) -> None:
        if self._leave is not None:
            self._loop.call_soon_threadsafe(self._leave.set)
        if self._serving is not None:
            try:
                self._serving.exception(timeout=self.timeout)
            except (TimeoutError, asyncio.CancelledError):
                self._serving.cancel()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(self.timeout)
        self._client = None

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool of the server; the world's `execute=` takes this as it is.

        Returns:
            The structured content of the result where there is one, else its text, read if it is a
            JSON object or list.

        Raises:
            InputError: The connection is not open.
            RuntimeError: The tool reports an error, or does not answer in time.
        """
        if self._client is None:
            raise InputError(
                "an MCP server answers inside `with` only; the connection is closed. "
                "Write `with McpServer(...) as server:` around the run."
            )
        waiting = asyncio.run_coroutine_threadsafe(
            self._client.call_tool(name, dict(arguments)), self._loop
        )
        try:
            result = waiting.result(self.timeout)
        except TimeoutError as error:
            waiting.cancel()
            raise RuntimeError(f"{name} did not answer in {self.timeout:g} s") from error
        text = "\n".join(str(part.text) for part in result.content if getattr(part, "text", None))
        if _either(result, "is_error", "isError"):
            raise RuntimeError(text or f"{name} reports an error")
        structured = _either(result, "structured_content", "structuredContent")
        return structured if structured is not None else _parsed(text)


async def _listed(client: Any) -> list[dict[str, Any]]:
    """Read every page of the tool list, as schemas."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = await (client.list_tools(cursor=cursor) if cursor else client.list_tools())
        for tool in page.tools:
            schema = _either(tool, "input_schema", "inputSchema")
            found.append(
                {"name": tool.name, "description": tool.description or "", "parameters": schema}
            )
        cursor = _either(page, "next_cursor", "nextCursor")
        if not cursor:
            return found


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _either(value: Any, one: str, other: str) -> Any:
    return getattr(value, one, None) if hasattr(value, one) else getattr(value, other, None)


def _innermost(error: BaseException) -> BaseException:
    """Unwrap the groups in which task groups raise."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
