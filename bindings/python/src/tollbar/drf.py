"""A throttle of Django REST framework. A subclass names its table:

    class Burst(tollbar.drf.Throttle):
        table = tollbar.Table.open("/dev/shm/api", "100/min burst 20", 100_000)

    throttle_classes = [Burst]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle

from ._http import Exempt, Gate, Policies, client_key
from .django import layers_of
from .policy import Policy
from .table import Table

if TYPE_CHECKING:
    from ._core import Decision, Key


class Throttle(BaseThrottle):  # type: ignore[misc]
    """The framework answers requests above the limit with 429 and Retry-After. With the middleware
    tollbar.django.fields all responses have RateLimit headers."""

    table: ClassVar[Table | str | Policy]
    """The table, or a policy of which a table of this process is made."""
    policy: ClassVar[int | str | tuple[int | str, ...]] = 0
    """The policy of the table, or several, which are charged all or none."""
    exempt: ClassVar[Exempt] = ()
    """Keys that always pass, as in wsgi.RateLimit."""
    _gate: ClassVar[Gate[Any]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "table"):
            cls._gate = Gate(
                cls.table,
                lambda made: made[0],
                policy=lambda made: made[2],
                cost=lambda made: made[1],
                exempt=cls.exempt,
            )

    def get_key(self, request: Any, view: Any) -> Key:
        """The user's primary key, or the client's address: that of the connection, unless
        NUM_PROXIES says how many proxies have written X-Forwarded-For. The framework's own
        throttles take any client's word for it."""
        user = request.user
        if user and user.is_authenticated:
            return f"user {user.pk}"
        proxies = api_settings.NUM_PROXIES is not None
        return client_key(self.get_ident(request) if proxies else request.META.get("REMOTE_ADDR"))

    def get_cost(self, request: Any, view: Any) -> int:
        """The permits that the request takes."""
        return 1

    def get_policy(self, request: Any, view: Any) -> Policies:
        """The policy or the policies of the request: numbers or names of the table, or a Policy,
        which the table gets if it lacks it. None: the request is not limited."""
        return self.policy

    def allow_request(self, request: Any, view: Any) -> bool:
        made = (self.get_key(request, view), self.get_cost(request, view), self.get_policy(request, view))
        # The middleware tollbar.django.fields, or rate_limit, writes the fields.
        answer = self._gate.decide(made, layers_of(request)[0])
        self._decision: Decision | None = answer.decision
        return answer.refused is None

    def wait(self) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The seconds until the request would pass; None, if it never would."""
        return None if self._decision is None or self._decision.retry_after_ns is None else self._decision.retry_after


__all__ = ["Throttle"]
