"""What a browser would see of a page."""

from html.parser import HTMLParser

from renderer_conformance import squeezed


class Page(HTMLParser):
    """What a browser would see: tags, attributes and visible text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self._inside = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside.append(tag)

    def handle_endtag(self, tag):
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data):
        if "style" not in self._inside and "svg" not in self._inside:
            self.texts.append(data)

    @property
    def text(self):
        return squeezed(" ".join(self.texts))
