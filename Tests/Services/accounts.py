"""OAuth 2.0 of the stand-ins: tokens that expire, refresh tokens that stay, change or are valid once, codes with PKCE (RFC 7636)."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Optional

from service import Answer


@dataclass
class Accounts:
    """The accounts of one service. Tests advance the time: `now` is in seconds and does not change by itself."""

    #: "keeps": a refresh gives no new refresh token. "changes": it gives a new one, and the old one remains valid.
    #: "once": the old one becomes invalid, and using it again invalidates the whole family (RFC 6819, 5.2.2.3).
    refreshing: str = "keeps"
    lifetime: int = 3600
    now: float = 1_800_000_000.0
    access: dict[str, float] = field(default_factory=dict)
    #: By refresh token, its family.
    refresh: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    #: By code, its redirect address and challenge.
    codes: dict[str, tuple[str, str]] = field(default_factory=dict)
    refreshes: int = 0
    #: The redirect URI that is registered for the app. All but its port must be equal, or the port as well. Empty: any is accepted.
    registered: str = ""
    compares_ports: bool = False

    def sign_in(self) -> tuple[str, str]:
        """Returns an access token and a refresh token."""
        family = secrets.token_hex(4)
        return self._access(), self._refresh(family)

    def expire(self) -> None:
        self.access.clear()

    def revoke(self) -> None:
        """Revokes the consent, as a user can."""
        self.access.clear()
        self.refresh.clear()

    def knows(self, authorization: str) -> bool:
        kind, _, token = authorization.partition(" ")
        return kind.lower() == "bearer" and self.access.get(token, 0) > self.now

    def authorize(self, query: dict[str, str]) -> Answer:
        """The page on which the user consents. It consents immediately."""
        target, challenge = query.get("redirect_uri", ""), query.get("code_challenge", "")
        if query.get("response_type") != "code" or not target or (challenge and query.get("code_challenge_method") != "S256"):
            return Answer.of({"error": "invalid_request"}, 400)
        compared = target if self.compares_ports else re.sub(r":[0-9]+(?=/|$)", "", target)
        if self.registered and compared != self.registered:
            return Answer.of({"error": "redirect_uri_mismatch"}, 400)
        code = secrets.token_urlsafe(12)
        self.codes[code] = (target, challenge)
        mark = "&" if "?" in target else "?"
        return Answer(302, b"", {"Location": f"{target}{mark}code={code}&state={query.get('state', '')}"})

    def token(self, form: dict[str, str]) -> Answer:
        grant = form.get("grant_type")
        if grant == "authorization_code":
            return self._by_code(form)
        if grant == "refresh_token":
            return self._by_refresh(form.get("refresh_token", ""))
        return Answer.of({"error": "unsupported_grant_type"}, 400)

    def _by_code(self, form: dict[str, str]) -> Answer:
        target, challenge = self.codes.pop(form.get("code", ""), ("", ""))
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        fits = not challenge or base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == challenge
        if not target or target != form.get("redirect_uri") or not fits:
            return Answer.of({"error": "invalid_grant"}, 400)
        access, refresh = self.sign_in()
        return self._tokens(access, refresh)

    def _by_refresh(self, token: str) -> Answer:
        self.refreshes += 1
        family = self.refresh.get(token)
        if family is None:
            if token in self.used:
                self.refresh = {each: other for each, other in self.refresh.items() if other != self.used[token]}
                self.access.clear()
            return Answer.of({"error": "invalid_grant", "error_description": "The refresh token is void."}, 400)
        if self.refreshing == "keeps":
            return self._tokens(self._access(), None)
        if self.refreshing == "once":
            self.used[token] = self.refresh.pop(token)
        return self._tokens(self._access(), self._refresh(family))

    def _access(self) -> str:
        token = secrets.token_urlsafe(18)
        self.access[token] = self.now + self.lifetime
        return token

    def _refresh(self, family: str) -> str:
        token = secrets.token_urlsafe(18)
        self.refresh[token] = family
        return token

    def _tokens(self, access: str, refresh: Optional[str]) -> Answer:
        found = {"access_token": access, "token_type": "bearer", "expires_in": self.lifetime}
        return Answer.of(found if refresh is None else {**found, "refresh_token": refresh})


