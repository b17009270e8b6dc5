"""An answerer that needs no model: it answers with what it is told to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from memreplay.conversations.models import Question
from memreplay.llm.model import AnswerRequest, PromptMessage, Reply


@dataclass
class ScriptedAnswerer:
    """Keeps the requests; ``answers`` maps a prompt to a reply."""

    answers: Callable[[str], Reply] = lambda prompt: Reply(text=prompt)
    budget: int = 1000
    requests: list[AnswerRequest] = field(default_factory=list)

    def request(self, question: Question, context: str, model: str, repeat: int) -> AnswerRequest:
        """The context and the question, one below the other."""
        segments = (context, "\n", question.text)
        return AnswerRequest(
            model=model,
            api_base=None,
            messages=(PromptMessage(role="user", segments=segments),),
            parameters={},
            repeat=repeat,
        )

    async def answer(self, request: AnswerRequest) -> Reply:
        """As told."""
        self.requests.append(request)
        return self.answers(request.messages[0].content)

    def context_budget(self, model: str, limited_by_top_k: bool = True) -> int:
        """The same for every model."""
        return self.budget
