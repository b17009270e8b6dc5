"""``memreplay serve-backend``: a memory as an HTTP service."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from memory_backends.base import MemoryBackend, StoreUnavailableError
from memory_backends.metering import MeteredChat
from memory_backends.registry import backend_class, create_backend
from memory_backends.stores.cleanup import COLLECTIONS
from memory_backends.stores.leases import Lease
from memreplay.cli.options import COMMAND_OPTIONS
from memreplay.conversations.models import Question
from memreplay.engine.remote.addresses import refuse_unknown_backends
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.catalogue import ensure_reachable
from memreplay.llm.client import NeverUnavailableModel
from memreplay.llm.litellm_setup import warm_up
from memreplay.llm.model import AnswerModel, AnswerRequest, PromptMessage, Reply
from memreplay.llm.ports import MemoryChatModel, ModelFactExtractor
from memreplay.llm.prompts import HISTORY_HEADING, after_history, build_request, longest_reply, read_prompt
from memreplay.llm.tokens import context_budget
from memreplay.runtime.memories import connections, ensure_models_answer, resources_of
from memreplay.settings import Settings, read_settings
from memreplay.signals import SECONDS_TO_END, Deadline, requests_to_end, signal_handlers

if TYPE_CHECKING:
    from aiohttp.web import TCPSite

command = typer.Typer(**COMMAND_OPTIONS)


@command.command()
def serve_backend(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A memory: hybrid, rag, package.module:Class …")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; one that is not loopback requires a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free port.")] = 8377,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="MEMREPLAY_SERVE_TOKEN",
            show_default=False,
            help="Bearer token that clients must send; better given in the environment.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"Model that answers from the memory. [default: {EXTRACTIVE_MODEL}]"),
    ] = None,
) -> None:
    """Serve a memory over HTTP until interrupted, as an agent for benchmark runners.

    Uses the configured stores.
    """
    from memreplay.server.app import is_loopback

    settings = replace(read_settings(model=(model,) if model else ()), backend=(name,))
    refuse_unknown_backends([name])
    if name.startswith(("http:", "https:")):
        raise UsageError(f"{name} is an HTTP agent already")
    if not is_loopback(host) and not token:
        raise UsageError(
            f"listening on {host} exposes the memory: require a token with --token or MEMREPLAY_SERVE_TOKEN"
        )
    models = {settings.model[0], settings.extractor} - {EXTRACTIVE_MODEL, None}
    for used in (settings.model[0], settings.extractor):
        if used is not None:
            ensure_reachable(used, settings.api_base)
    if models:
        warm_up()
    asyncio.run(_serve(name, settings, ServeOptions(host, port, token)))


@dataclass(frozen=True)
class ServeOptions:
    """Without a ``token`` anybody on this machine may call."""

    host: str
    port: int
    token: str | None


def _is_limited_by_top_k(name: str) -> bool:
    return bool(getattr(backend_class(name), "limited_by_top_k", True))


async def _serve(name: str, settings: Settings, options: ServeOptions) -> None:
    from aiohttp import web

    from memreplay.server.app import SECONDS_TO_STOP, BackendServer
    from memreplay.server.session import Limits

    resources, files = resources_of(settings)
    lease = Lease(resources.redis, resources.qdrant, lambda sentence: print(sentence, file=sys.stderr))
    model, base = settings.model[0], settings.api_base

    def made(used: AsyncExitStack) -> MemoryBackend:
        """Return a memory with connections of its own, which belong to the event loop of its thread."""
        redis, qdrant = connections(settings)
        used.push_async_callback(redis.aclose)
        used.push_async_callback(qdrant.aclose)
        own = replace(resources, redis=redis, qdrant=qdrant)
        if settings.extractor is not None:
            asked = NeverUnavailableModel()
            own = replace(
                own,
                extractor=ModelFactExtractor(asked, settings.extractor, base),
                chat=MeteredChat(MemoryChatModel(asked, settings.extractor, base)),
            )
        return create_backend(name, own, {})

    try:
        await asyncio.to_thread(ensure_models_answer, settings, resources)
        await resources.redis.check()
        await resources.qdrant.check()
        await resources.qdrant.check_collections(COLLECTIONS)
        reader = MessageReader(NeverUnavailableModel(), model, base)
        server = BackendServer(
            name,
            made,
            reader.reply,
            Limits(settings.top_k, context_budget(model, settings.context_tokens, _is_limited_by_top_k(name))),
        )
        runner = web.AppRunner(
            server.application(options.host, options.token), access_log=None, shutdown_timeout=SECONDS_TO_STOP
        )
        await runner.setup()
        lease.hold(server.run_id)
        with _stop_signals(SECONDS_TO_STOP + SECONDS_TO_END) as stop:
            try:
                await _listen(web.TCPSite(runner, options.host, options.port), options)
                print(_announcement(name, model, options.host, runner.addresses[0][1]), file=sys.stderr)
                await stop.wait()
            finally:
                await runner.cleanup()
    except StoreUnavailableError as error:
        raise MissingServerOrKeyError(str(error)) from None
    finally:
        files.close()
        await lease.release()
        await resources.redis.aclose()
        await resources.qdrant.aclose()


def _announcement(name: str, model: str, host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"{name} answers at http://{shown}:{port}/run_turn with {model}; ctrl+c stops it"


async def _listen(site: TCPSite, options: ServeOptions) -> None:
    try:
        await site.start()
    except OSError as error:
        raise UsageError(f"cannot listen on {options.host}:{options.port}: {error.strerror or error}") from None


@contextmanager
def _stop_signals(longest_wait: float) -> Iterator[asyncio.Event]:
    """Set an event at the first signal; a second one does not wait for turns in progress.

    After the first, the process ends within ``longest_wait`` seconds, whatever it is doing.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    deadline = Deadline("stopped while a turn was in progress")

    def on_signal() -> None:
        deadline.set(SECONDS_TO_END if deadline.is_set else longest_wait)
        loop.call_soon_threadsafe(stop.set)

    try:
        with signal_handlers(dict.fromkeys([signal.SIGINT, *requests_to_end()], on_signal)):
            yield stop
    finally:
        deadline.close()


class MessageReader:
    """Answers a message through a model, from the context that memory recalled for it."""

    def __init__(self, model: AnswerModel, name: str, api_base: str | None) -> None:
        self._model = model
        self._name = name
        self._api_base = api_base

    async def reply(self, context: str, message: str) -> Reply:
        return await self._model.answer(self._request(context, message))

    def _request(self, context: str, message: str) -> AnswerRequest:
        """Return one of our own prompts is sent unchanged. The embedded reader treats any message as a question."""
        is_question = read_prompt(f"{HISTORY_HEADING}\n\n{message}") is not None
        if self._name == EXTRACTIVE_MODEL and not is_question:
            question = Question(id="", kind="recall", type="", text=message, expected="")
            return build_request(question, context, self._name, self._api_base)
        prompt: PromptMessage = after_history(context, message)
        return AnswerRequest(
            model=self._name,
            api_base=self._api_base,
            messages=(prompt,),
            parameters={"temperature": 0, "max_tokens": longest_reply(self._name)},
        )
