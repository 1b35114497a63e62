/** Requests that two parsers could read in two ways, for both hops: the daemon's listener and the service's. */

/** `head` are header lines behind Host and the credential; `body` is what follows the empty line. */
export interface Smuggling {
  readonly name: string;
  /** POST and HTTP/1.1 where left out. */
  readonly first?: (target: string) => string;
  readonly head: string;
  readonly body?: string;
}

/** A second request that must never come out on the other side. */
const HIDDEN = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n";
const CHUNKED = "Transfer-Encoding: chunked";

/** Refused: the upstream sees nothing. */
export const REFUSED: readonly Smuggling[] = [
  { name: "a length and chunks", head: `Content-Length: 4\r\n${CHUNKED}`, body: `0\r\n\r\n${HIDDEN}` },
  { name: "chunks and a length", head: `${CHUNKED}\r\nContent-Length: 4`, body: `0\r\n\r\n${HIDDEN}` },
  { name: "two equal lengths", head: "Content-Length: 2\r\nContent-Length: 2", body: "ab" },
  { name: "two lengths", head: "Content-Length: 2\r\nContent-Length: 40", body: `ab${HIDDEN}` },
  { name: "a list of lengths", head: "Content-Length: 2, 2", body: "ab" },
  { name: "a length with a sign", head: "Content-Length: +2", body: "ab" },
  { name: "a hexadecimal length", head: "Content-Length: 0x2", body: "ab" },
  { name: "a length with a blank in it", head: "Content-Length: 2 0", body: "ab" },
  { name: "an unknown coding", head: "Transfer-Encoding: xchunked", body: "0\r\n\r\n" },
  { name: "chunked that is not last", head: "Transfer-Encoding: chunked, identity", body: "0\r\n\r\n" },
  { name: "a coding before chunked", head: "Transfer-Encoding: gzip, chunked", body: "0\r\n\r\n" },
  { name: "identity before chunked", head: "Transfer-Encoding: identity, chunked", body: "0\r\n\r\n" },
  { name: "chunked twice", head: `${CHUNKED}\r\n${CHUNKED}`, body: "0\r\n\r\n" },
  { name: "a coding in quotes", head: 'Transfer-Encoding: "chunked"', body: "0\r\n\r\n" },
  { name: "a coding behind a vertical tab", head: "Transfer-Encoding: \x0bchunked", body: "0\r\n\r\n" },
  { name: "a folded header", head: "X-A: b\r\n folded: c\r\nContent-Length: 0" },
  { name: "a folded coding", head: "Transfer-Encoding:\r\n chunked", body: "0\r\n\r\n" },
  { name: "a blank before the colon", head: "Content-Length : 2", body: "ab" },
  { name: "a tab before the colon", head: "Transfer-Encoding\t: chunked", body: "0\r\n\r\n" },
  { name: "a bare LF between headers", head: "X-A: b\nContent-Length: 2", body: "ab" },
  { name: "a bare CR in a header", head: "X-A: b\rContent-Length: 2\r\nContent-Length: 0" },
  { name: "a NUL in a header", head: "X-A: b\0c\r\nContent-Length: 0" },
  { name: "a header without a name", head: ": b\r\nContent-Length: 0" },
  { name: "a blank in a name", head: "X A: b\r\nContent-Length: 0" },
  { name: "two Hosts", head: "Host: y\r\nContent-Length: 0" },
  { name: "chunks in HTTP/1.0", first: (to) => `POST ${to} HTTP/1.0`, head: CHUNKED, body: "0\r\n\r\n" },
  { name: "HTTP/0.9", first: (to) => `GET ${to} HTTP/0.9`, head: "X-A: b" },
  { name: "HTTP/1.2", first: (to) => `GET ${to} HTTP/1.2`, head: "X-A: b" },
  { name: "HTTP/2.0", first: (to) => `GET ${to} HTTP/2.0`, head: "X-A: b" },
  { name: "no version", first: (to) => `GET ${to}`, head: "X-A: b" },
  { name: "a whole address", first: (to) => `GET http://127.0.0.1${to} HTTP/1.1`, head: "X-A: b" },
  {
    name: "an upgrade with a length",
    first: (to) => `GET ${to} HTTP/1.1`,
    head: `Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: ${HIDDEN.length}`,
    body: HIDDEN,
  },
  {
    name: "an upgrade with chunks",
    first: (to) => `GET ${to} HTTP/1.1`,
    head: `Connection: Upgrade\r\nUpgrade: websocket\r\n${CHUNKED}`,
    body: `0\r\n\r\n${HIDDEN}`,
  },
];

/** Broken only in a body, when the head may be on its way: the upstream sees no whole request. */
export const BROKEN_BODIES: readonly Smuggling[] = [
  { name: "a chunk size that is none", head: CHUNKED, body: `zz\r\nab\r\n0\r\n\r\n${HIDDEN}` },
  { name: "a chunk size with a sign", head: CHUNKED, body: `+2\r\nab\r\n0\r\n\r\n${HIDDEN}` },
  { name: "a chunk size with 0x", head: CHUNKED, body: `0x2\r\nab\r\n0\r\n\r\n${HIDDEN}` },
  { name: "a chunk size with a blank before", head: CHUNKED, body: ` 2\r\nab\r\n0\r\n\r\n${HIDDEN}` },
  { name: "a chunk size beyond all numbers", head: CHUNKED, body: `fffffffffffffffff\r\nab\r\n0\r\n\r\n` },
  { name: "a chunk that is longer than it says", head: CHUNKED, body: `2\r\nabc\r\n0\r\n\r\n${HIDDEN}` },
  { name: "a chunk that ends in a bare LF", head: CHUNKED, body: `2\nab\n0\n\n${HIDDEN}` },
  { name: "a chunk extension with a bare LF", head: CHUNKED, body: `2;a\nab\r\n0\r\n\r\n${HIDDEN}` },
  { name: "a trailer with a blank before its colon", head: CHUNKED, body: "0\r\nX-A : b\r\n\r\n" },
];

/** Odd and well-formed: the upstream sees exactly one request, framed by us. */
export const REFRAMED: readonly (Smuggling & { readonly comes: string })[] = [
  { name: "a chunk extension", head: CHUNKED, body: '2;a=b;c="d"\r\nab\r\n0\r\n\r\n', comes: "ab" },
  { name: "leading zeros in a chunk size", head: CHUNKED, body: "0002\r\nab\r\n000\r\n\r\n", comes: "ab" },
  { name: "another case", head: "tRANSFER-eNCODING: CHUNKED", body: "2\r\nab\r\n0\r\n\r\n", comes: "ab" },
  { name: "a length with zeros before it", head: "Content-Length: 002", body: "ab", comes: "ab" },
  {
    name: "a length listed in Connection",
    head: "Connection: close, Content-Length\r\nContent-Length: 2",
    body: "ab",
    comes: "ab",
  },
  { name: "a request in a body", head: `Content-Length: ${HIDDEN.length}`, body: HIDDEN, comes: HIDDEN },
  {
    name: "a request in a chunk",
    head: CHUNKED,
    body: `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`,
    comes: HIDDEN,
  },
];

/** The bytes of a case. */
export const bytesOf = (
  { first = (target: string) => `POST ${target} HTTP/1.1`, head, body = "" }: Smuggling,
  { target, credential }: { readonly target: string; readonly credential: string },
): string => `${first(target)}\r\nHost: x\r\n${credential}\r\n${head}\r\n\r\n${body}`;
