"""What reports share: their text, as notebooks show it."""

from __future__ import annotations

import html


class Shown:
    """A report that notebooks show as its text."""

    def _repr_html_(self) -> str:
        """Return the text as preformatted HTML."""
        return f"<pre>{html.escape(str(self))}</pre>"
