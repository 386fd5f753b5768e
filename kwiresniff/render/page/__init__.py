"""Results as one self-contained page: one script of its own, nothing fetched from anywhere."""

from kwiresniff.render.page.comparison import comparison_page
from kwiresniff.render.page.html import check, page

__all__ = ["check", "comparison_page", "page"]
