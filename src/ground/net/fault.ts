/** Why there is no connection or no whole answer. One type for everything that dials out. */

/** An address that gave no connection. */
export interface DialAttempt {
  readonly address: string;
  readonly port: number;
  /** As part of a sentence about the address: "refuses connections". */
  readonly why: string;
}

export type NetCause =
  /** The name has this address, which may not be dialled. So the name was not dialled at all. */
  | {
      readonly _tag: "ForbiddenAddress";
      readonly address: string;
      readonly kind: "private" | "own";
      readonly setting: string | undefined;
    }
  /** Plain HTTP, to a host that the operator has not allowed. */
  | { readonly _tag: "PlainHttp"; readonly setting: string | undefined }
  | { readonly _tag: "NoSuchName" }
  | { readonly _tag: "NotConnected"; readonly attempts: readonly DialAttempt[] }
  | { readonly _tag: "Tls"; readonly code: string }
  /** 421: the server does not serve this host. It did nothing. */
  | { readonly _tag: "Misdirected" }
  /** `ms`: the limit that passed, if it was the whole request's. */
  | { readonly _tag: "Late"; readonly ms: number | null }
  | { readonly _tag: "Closed" }
  | { readonly _tag: "NotHttp"; readonly code: string }
  /** Any other code of the system or the client. */
  | { readonly _tag: "Failed"; readonly code: string }
  | { readonly _tag: "TooLarge"; readonly maxBytes: number }
  | { readonly _tag: "Redirect"; readonly to: string; readonly kind: "refused" | "too often" };

/** The causes before a request was sent, or after which the server did nothing. */
const UNSENT: ReadonlySet<NetCause["_tag"]> = new Set([
  "ForbiddenAddress",
  "PlainHttp",
  "NoSuchName",
  "NotConnected",
  "Tls",
  "Misdirected",
]);

/** IPv6 in brackets, as in URLs. */
const shownAddress = ({ address, port }: DialAttempt): string =>
  address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;

const shownAttempts = (attempts: readonly DialAttempt[]): string =>
  attempts.map((attempt) => `${shownAddress(attempt)} ${attempt.why}`).join(", ");

const remedy = (setting: string | undefined, host: string): string =>
  setting === undefined
    ? ""
    : `. The operator can allow it: add ${host} to the hosts of ${setting}, and restart the service`;

/** A cause as part of a sentence about the host, without a full stop. */
const sentence = (cause: NetCause, host: string): string => {
  switch (cause._tag) {
    case "ForbiddenAddress":
      return cause.kind === "private"
        ? `has a private address (${cause.address})${remedy(cause.setting, host)}`
        : `has an address of this machine (${cause.address})${remedy(cause.setting, host)}`;
    case "PlainHttp":
      return `is not reached, because its URL is not https${remedy(cause.setting, host)}`;
    case "NoSuchName":
      return "cannot be resolved";
    case "NotConnected":
      return `cannot be reached (${shownAttempts(cause.attempts)})`;
    case "Tls":
      return `cannot be reached over TLS (${cause.code})`;
    case "Misdirected":
      return "answered with status 421: it does not serve this host";
    case "Late":
      return cause.ms === null ? "did not answer in time" : `did not answer within ${cause.ms / 1000} s`;
    case "Closed":
      return "closed the connection";
    case "NotHttp":
      return `did not answer in valid HTTP${cause.code === "" ? "" : ` (${cause.code})`}`;
    case "Failed":
      return `cannot be reached (${cause.code})`;
    case "TooLarge":
      return `answered with more than ${cause.maxBytes} bytes`;
    case "Redirect":
      return cause.kind === "refused"
        ? `redirects to ${cause.to}, which is not allowed`
        : "redirects too often";
  }
};

/** A cause likewise, for people who may not learn where the host is: without addresses and settings. */
const discreetSentence = (cause: NetCause, host: string): string => {
  switch (cause._tag) {
    case "ForbiddenAddress":
      return cause.kind === "private" ? "has a private address" : "has an address of this machine";
    case "PlainHttp":
      return sentence({ ...cause, setting: undefined }, host);
    case "NotConnected":
      return `cannot be reached (it ${[...new Set(cause.attempts.map(({ why }) => why))].join(", it ")})`;
    case "Redirect":
      return "redirects to another place";
    default:
      return sentence(cause, host);
  }
};

export class NetFault extends Error {
  readonly host: string;
  readonly reason: NetCause;
  /** As part of a sentence about the host: "cannot be resolved". It names each address that was dialled. */
  readonly why: string;

  constructor(host: string, reason: NetCause) {
    const why = sentence(reason, host);
    super(`${host} ${why}`);
    this.host = host;
    this.reason = reason;
    this.why = why;
  }

  /** Whether the server certainly did nothing. */
  get isUnsent(): boolean {
    return UNSENT.has(this.reason._tag);
  }

  /** As `why`, without addresses and settings: for sandboxes, which may not learn where the operator's hosts are. */
  get discreetWhy(): string {
    return discreetSentence(this.reason, this.host);
  }
}

const CLOSED = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE", "UND_ERR_RES_CONTENT_LENGTH_MISMATCH"]);
const LATE = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);

/** The code of an error of the system, or its name. */
export const errorCode = (error: unknown): string => {
  if (!(error instanceof Error)) return "";
  return "code" in error && typeof error.code === "string" ? error.code : "";
};

/**
 * The fault for an error of the client library, which may wrap it. An abort by the caller stays as it is.
 *
 * @param withinMs the limit for the whole request.
 */
export const toFault = (
  error: unknown,
  { host, withinMs = null }: { readonly host: string; readonly withinMs?: number | null | undefined },
): unknown => {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof NetFault || at.name === "AbortError") return at;
    if (at.name === "TimeoutError") return new NetFault(host, { _tag: "Late", ms: withinMs });
    const code = errorCode(at);
    if (LATE.has(code)) return new NetFault(host, { _tag: "Late", ms: null });
    if (CLOSED.has(code)) return new NetFault(host, { _tag: "Closed" });
    if (at.cause === undefined)
      return new NetFault(host, { _tag: /^(?:HPE_|$)/.test(code) ? "NotHttp" : "Failed", code });
  }
  return new NetFault(host, { _tag: "NotHttp", code: "" });
};
