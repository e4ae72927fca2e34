"""Models behind a network: any endpoint that speaks OpenAI's protocol, and Anthropic's.

Through pydantic-ai's direct requests, which translate and nothing more: history, retries and budgets are the
loop's, so that they are in the journal. Keys come from the environment, and are cut out of what we repeat.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tunesmith.errors import BadInput
from tunesmith.run.dialogue import LONGEST, Message, NoReply, Pending, Reply, Request, Usage
from tunesmith.text import cut, redacted

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
SECONDS = 600.0  # for one reply
HINT = "install the extra that brings the client: pip install 'tunesmith[models]'"


@dataclass
class Hosted:
    """`provider` is openai or anthropic; `url` another place that speaks that protocol."""

    provider: str
    model: str
    url: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    seconds: float = SECONDS
    _client: Any = field(default=None, init=False, repr=False)

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}" + (f"@{self.url}" if self.url else "")

    @property
    def _key(self) -> str:
        return self.environment.get(KEYS[self.provider], "")

    def prepare(self) -> None:
        """Everything that can be refused before a run begins."""
        if not self._key and not self.url:
            raise BadInput(
                f"the model {self.name} needs a key, and {KEYS[self.provider]} is not set",
                hint=f"export {KEYS[self.provider]}=…, or name a server of your own: "
                f"{self.provider}:{self.model}@http://host:port/v1",
            )
        try:
            self._client = self._made()
        except ImportError as error:
            raise BadInput(f"the model {self.name} cannot be used: {error}", hint=HINT) from error

    def reply(self, request: Request) -> Reply | Pending | NoReply:
        if self._client is None:
            self.prepare()
        from pydantic_ai.direct import model_request_sync
        from pydantic_ai.exceptions import AgentRunError, ModelAPIError, ModelRequestRejectedError, UserError
        from pydantic_ai.settings import ModelSettings

        started = time.monotonic()
        try:
            limits = ModelSettings(max_tokens=request.most_tokens, timeout=self.seconds)
            answer = model_request_sync(self._client, _messages(request.messages), model_settings=limits)
        except ModelAPIError as error:
            status = getattr(error, "status_code", None)
            lasts = isinstance(error, ModelRequestRejectedError) or status in (400, 401, 403, 404)
            return NoReply(self._said(error), lasts, error.retry_after)
        except UserError as error:
            return NoReply(self._said(error), lasts=True)
        except (AgentRunError, OSError, ValueError) as error:  # a reply that is no reply of that protocol
            return NoReply(self._said(error))
        text, ran_out = answer.text or "", answer.finish_reason == "length"
        if not text.strip() and not ran_out:  # one that thought until the end has been paid for, and is told
            return NoReply(f"{self.name} sent an empty reply")
        is_cut, seconds = ran_out or len(text) > LONGEST, time.monotonic() - started
        return Reply(text[: LONGEST + 1], _usage(answer), seconds, is_cut=is_cut)

    def _made(self) -> Any:
        settings: dict[str, Any] = {"api_key": self._key or "none", "base_url": self.url or None}
        settings |= {"max_retries": 0, "timeout": self.seconds}
        if self.provider == "anthropic":
            from anthropic import AsyncAnthropic
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            own = AsyncAnthropic(**settings)
            return AnthropicModel(self.model, provider=AnthropicProvider(anthropic_client=own))
        from openai import AsyncOpenAI
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        client = AsyncOpenAI(**settings)
        return OpenAIChatModel(self.model, provider=OpenAIProvider(openai_client=client))

    def _said(self, error: BaseException) -> str:
        text = " ".join(str(error).split()) or type(error).__name__
        return f"{self.name}: {cut(redacted(text, [self._key]), 300)}"


def _messages(said: tuple[Message, ...]) -> list[ModelMessage]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    found: list[ModelMessage] = []
    for message in said:
        if message.speaker == "assistant":
            found.append(ModelResponse(parts=[TextPart(content=message.text)]))
        else:
            kind = SystemPromptPart if message.speaker == "system" else UserPromptPart
            found.append(ModelRequest(parts=[kind(content=message.text)]))
    return found


def _usage(answer: Any) -> Usage:
    usage = answer.usage
    try:
        dollars: float | None = float(answer.cost().total_price)
    except (LookupError, AssertionError, ValueError):  # a model without a price list
        dollars = None
    return Usage(usage.input_tokens or None, usage.output_tokens or None, dollars)
