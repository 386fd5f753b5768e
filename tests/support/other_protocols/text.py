"""Protocols of lines of text."""

from __future__ import annotations

from random import Random

from tests.support.other_protocols.making import CLIENT, CONVERSATIONS, SERVER, TURNS, Said, Speaker, s32, word


def _lines(first: Said, client: bytes, server: bytes) -> Speaker:
    def speak(rng: Random) -> Said:
        turns = [
            (CLIENT, client % word(rng)) if at % 2 == 0 else (SERVER, server % word(rng)) for at in range(2 * TURNS)
        ]
        return [*first, *turns]

    return speak


CONVERSATIONS.update({
    "SSH": lambda rng: [
        (CLIENT, b"SSH-2.0-OpenSSH_9.2\r\n"),
        (SERVER, b"SSH-2.0-OpenSSH_9.6\r\n"),
        *[(side, s32(b"\x06" + rng.randbytes(rng.choice((23, 47, 95))))) for _ in range(TURNS) for side in (0, 1)],
    ],
    "FTP": _lines([(SERVER, b"220 FTP ready\r\n")], b"RETR %s.txt\r\n", b"150 Opening %s\r\n226 Done\r\n"),
    "SMTP": _lines([(SERVER, b"220 mail ESMTP\r\n")], b"RCPT TO:<%s@example.org>\r\n", b"250 2.1.5 %s ok\r\n"),
    "IMAP": _lines([(SERVER, b"* OK IMAP4rev1 ready\r\n")], b"a1 SELECT %s\r\n", b"* 5 EXISTS\r\na1 OK %s\r\n"),
    "POP3": _lines([(SERVER, b"+OK POP3 ready\r\n")], b"USER %s\r\n", b"+OK %s\r\n"),
    "IRC": _lines([(CLIENT, b"NICK me\r\nUSER guest 0 * :me\r\n")], b"PRIVMSG #%s :hello\r\n", b":srv 1 #%s :hi\r\n"),
    "SIP": _lines([], b"INVITE sip:%s@example SIP/2.0\r\nCSeq: 1\r\n\r\n", b"SIP/2.0 200 OK\r\nTo: %s\r\n\r\n"),
    "RTSP": _lines([], b"PLAY rtsp://cam/%s RTSP/1.0\r\nCSeq: 2\r\n\r\n", b"RTSP/1.0 200 OK\r\nSession: %s\r\n\r\n"),
    "XMPP": _lines(
        [(CLIENT, b"<?xml version='1.0'?><stream:stream to='example.org' xmlns='jabber:client'>")],
        b"<message to='%s@example.org'><body>hi</body></message>", b"<iq type='result' id='%s'/>",
    ),
    "Syslog": lambda rng: [
        (CLIENT, b"<%d>1 2026-01-01T00:00:00Z host app - - - %s\n" % (rng.randrange(190), word(rng))) for _ in range(60)
    ],
    "Syslog, octets counted": lambda rng: [
        (CLIENT, b"58 <165>1 2026-01-01T00:00:00Z host app - - - " + word(rng)) for _ in range(60)
    ],
    "Graphite": lambda rng: [(CLIENT, b"servers.%s.load %d 1700000000\n" % (word(rng), n)) for n in range(60)],
})  # fmt: skip
