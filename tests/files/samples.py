"""Small files of every kind, made by hand."""

import io
import struct
import zipfile
import zlib


def png(width: int = 40, height: int = 30, *, noise: int = 0) -> bytes:
    """Return an image. With `noise` it has so many bytes more, none of them twice the same."""
    rows = b"".join(b"\0" + b"\xff\x80\x40" * width for _ in range(height))
    own = bytes((at * 7919 + at // 251) % 256 for at in range(noise))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"tEXt", b"Comment\0" + own),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    written = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


def jpeg(width: int = 40, height: int = 30) -> bytes:
    """Return the frame of an image; its pixels do not matter."""
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8\xff\xe0\x00\x04ab" + frame + b"\xff\xda\x00\x02" + b"\x00" * 40 + b"\xff\xd9"


def gif(width: int = 40, height: int = 30) -> bytes:
    """Return an image without frames."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00\x00\x00\x3b"


def webp(width: int = 40, height: int = 30) -> bytes:
    """Return the head of an image."""
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + sizes
    return b"RIFF" + struct.pack("<I", len(body)) + body


def pdf(*pages: str, drawn: bytes = b"") -> bytes:
    """Return a document that says one line a page, or draws this on each."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids: list[str] = []
    for text in pages:
        stream = drawn or f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
        at = len(objects) + 1
        kids.append(f"{at} 0 R")
        font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents {at + 1} 0 R /Resources {font} >>"
        objects += [page.encode(), b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream)]
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    body, places = b"%PDF-1.4\n", list[int]()
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(body))
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


def docx(*paragraphs: str, body: bytes | None = None) -> bytes:
    """Return a document with these paragraphs, or with a body of its own."""
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    said = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    xml = f'<?xml version="1.0"?><w:document xmlns:w="{space}"><w:body>{said}</w:body></w:document>'.encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", xml if body is None else body)
    return file.getvalue()
