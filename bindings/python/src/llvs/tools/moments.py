"""Times as people write them: "2026-11-20", "yesterday 18:00", "3 days ago"."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Optional

#: The accepted forms, for messages.
FORMS = '"2026-11-20", "2026-11-20 18:00", "18:00", "yesterday 18:00", "monday", "3 days ago" or "now"'

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_UNITS = "second|minute|hour|day|week|month|year"
_ago = re.compile(rf"(\d{{1,6}}|an?|one)\s+({_UNITS})s?\s+ago", re.ASCII)
_day = re.compile(rf"(?:(today|yesterday|{'|'.join(_DAYS)})|(\d{{4}}-\d{{2}}-\d{{2}}))?(?:(?:\s+|(?<=\d)t|^)(\d{{1,2}}:\d{{2}}\S*))?")
_clock = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6})\d*)?)?(z|[+-]\d{2}:?\d{2})?", re.ASCII)


def seconds_of(text: str, *, end_of_day: bool = False, now: Optional[datetime] = None) -> float:
    """Returns the seconds since 1970 of a time, in the zone of this computer unless the text names a zone ("Z", "+02:00").

    end_of_day: whether a day without a time means its end (to find the state of that day) or its beginning (to find later changes). A
    weekday is the most recent one, today included.

    Raises ValueError, whose text is a sentence for people.
    """
    words = " ".join(text.split()).lower()
    here = now or datetime.now()
    try:
        return _read(words, here, end_of_day)
    except (OverflowError, ValueError, OSError):
        raise ValueError(f"{text!a} is no time: write {FORMS}") from None


def _read(words: str, now: datetime, end_of_day: bool) -> float:
    if words == "now":
        return now.timestamp()
    if found := _ago.fullmatch(words):
        return _before(now, int(found[1]) if found[1].isdigit() else 1, found[2]).timestamp()
    found = _day.fullmatch(words)
    if found is None or not words:
        raise ValueError
    day = _date(found[1], found[2], now)
    if found[3] is None:
        # The last moment that belongs to the day.
        return (day + timedelta(days=1)).timestamp() - 1e-6 if end_of_day else day.timestamp()
    clock = _clock.fullmatch(found[3])
    if clock is None:
        raise ValueError
    microsecond = int((clock[4] or "0").ljust(6, "0"))
    moment = day.replace(hour=int(clock[1]), minute=int(clock[2]), second=int(clock[3] or 0), microsecond=microsecond)
    if clock[5]:
        zone = clock[5].replace(":", "")
        moment = datetime.strptime(f"{moment:%Y-%m-%d %H:%M:%S.%f} {'+0000' if zone == 'z' else zone}", "%Y-%m-%d %H:%M:%S.%f %z")
    return moment.timestamp()


def _date(name: Optional[str], written: Optional[str], now: datetime) -> datetime:
    if written:
        return datetime.strptime(written, "%Y-%m-%d")
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if name is None or name == "today":
        return today
    back = 1 if name == "yesterday" else (today.weekday() - _DAYS.index(name)) % 7
    return today - timedelta(days=back)


def _before(now: datetime, count: int, unit: str) -> datetime:
    if unit in _SECONDS:
        # Elapsed time, also across a change of the clocks.
        return datetime.fromtimestamp(now.timestamp() - count * _SECONDS[unit])
    if unit in ("day", "week"):
        return now - timedelta(days=count * (7 if unit == "week" else 1))
    months = now.year * 12 + now.month - 1 - count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    for day in range(now.day, 0, -1):
        try:
            return now.replace(year=year, month=month + 1, day=day)
        except ValueError:
            # In a month of 30 days, the 31st means its last day.
            if day <= 28:
                raise
    raise ValueError
