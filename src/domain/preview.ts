/**
 * Previews: a browser's way to a port inside a sandbox, each on an origin of its own (api.md 3). Which hosts are
 * previews', and what becomes of cookies between the browser and the app. Pure.
 */
import * as Result from "effect/Result";
import { parseUuid } from "./ids.ts";

/** Where previews are: PLATFORM_PREVIEW_URL, or the service's own port below `localhost`. */
export interface PreviewAddress {
  readonly scheme: "http" | "https";
  /** What follows a host's first label, e.g. `.localhost`; lower case. */
  readonly suffix: string;
  /** As it stands in a URL: `:8080`, or nothing where it is the scheme's own. */
  readonly port: string;
}

/** What one preview shows. */
export interface PreviewPlace {
  readonly sessionId: string;
  /** Inside the sandbox. */
  readonly port: number;
}

const DEFAULT_PORTS = { http: 80, https: 443 } as const;
const MAX_PORT = 65_535;
const EXPECTED = "an http or https URL whose host begins with `*.`, without a path";
const WILDCARD = /^(https?):\/\/\*((?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+)(?::([1-9][0-9]{0,4}))?\/?$/i;
/** A name of 253 characters, less the longest first label: `p65535-` and a UUID. */
const LONGEST_SUFFIX = 253 - 43;

const portPart = (scheme: "http" | "https", port: number): string =>
  port === DEFAULT_PORTS[scheme] ? "" : `:${port}`;

/**
 * Reads a wildcard address, e.g. `https://*.preview.example.com`.
 *
 * @returns it, or what was expected instead.
 */
export const parsePreviewUrl = (text: string): Result.Result<PreviewAddress, string> => {
  const [, protocol = "", suffix = "", digits] = WILDCARD.exec(text) ?? [];
  const scheme = protocol.toLowerCase() === "https" ? "https" : "http";
  const port = digits === undefined ? DEFAULT_PORTS[scheme] : Number(digits);
  // Browsers take a name that ends in a number for an IPv4 address.
  if (protocol === "" || port > MAX_PORT || suffix.length > LONGEST_SUFFIX || /\.\d+$/.test(suffix)) {
    return Result.fail(EXPECTED);
  }
  return Result.succeed({ scheme, suffix: suffix.toLowerCase(), port: portPart(scheme, port) });
};

/** Previews below `localhost`, which browsers take to this machine without asking anybody. */
export const localPreviews = (port: number): PreviewAddress => ({
  scheme: "http",
  suffix: ".localhost",
  port: portPart("http", port),
});

/** The value of a preview's Host header, as browsers write it. */
export const previewHost = (address: PreviewAddress, { port, sessionId }: PreviewPlace): string =>
  `p${port}-${sessionId}${address.suffix}${address.port}`;

export const previewOrigin = (address: PreviewAddress, place: PreviewPlace): string =>
  `${address.scheme}://${previewHost(address, place)}`;

/**
 * What a Host header names: a preview by its one exact form, but for the case of its letters; `stranger`: a name below
 * the previews' domain that is none, and nothing else either; null: no preview, but some host of the service.
 */
export const previewNamed = (address: PreviewAddress, host: string): PreviewPlace | "stranger" | null => {
  const lower = host.toLowerCase();
  const name = (lower.split(":")[0] ?? "").replace(/\.+$/, "");
  if (!name.endsWith(address.suffix)) return null;
  const [, digits = "", id = ""] = /^p([1-9][0-9]{0,4})-([0-9a-f-]{36})\./.exec(lower) ?? [];
  const sessionId = parseUuid(id);
  const port = Number(digits);
  if (sessionId === null || port < 1 || port > MAX_PORT) return "stranger";
  const place = { port, sessionId };
  const explicit = `p${digits}-${id}${address.suffix}:${DEFAULT_PORTS[address.scheme]}`;
  const isExact = lower === previewHost(address, place) || (address.port === "" && lower === explicit);
  return isExact ? place : "stranger";
};

const COOKIE = "platform_preview";
const HOST_PREFIX = "__Host-";

/** Over https the browser itself sees to it that no other host and no page without TLS sets it. */
export const previewCookieName = ({ scheme }: PreviewAddress): string =>
  scheme === "https" ? `${HOST_PREFIX}${COOKIE}` : COOKIE;

/** Names that are ours in either form: some browsers take the prefix in any case. */
const isOurs = (name: string): boolean => {
  const lower = name.toLowerCase();
  return lower === COOKIE || lower === `${HOST_PREFIX}${COOKIE}`.toLowerCase();
};

const nameOf = (pair: string): string => (pair.split("=")[0] ?? "").trim();

/** A secret of 256 bits, base64url: what a link and a cookie hold. */
const SECRET = /^[A-Za-z0-9_-]{43}$/;
/**
 * A page can add cookies of our name below a path of its own, or from a sibling of a wildcard domain: ours is looked for
 * among so many.
 */
const CANDIDATES_MAX = 4;

/** Values of a Cookie header that may be the preview's, in their order. */
export const previewCookies = (address: PreviewAddress, header: string): readonly string[] => {
  const name = previewCookieName(address);
  return header
    .split(";")
    .filter((pair) => nameOf(pair) === name)
    .map((pair) => pair.slice(pair.indexOf("=") + 1).trim())
    .filter((value) => SECRET.test(value))
    .slice(0, CANDIDATES_MAX);
};

/** A Cookie header for the app: all but ours. Null where nothing is left. */
export const withoutPreviewCookie = (header: string): string | null => {
  const all = header.split(";");
  const left = all.filter((pair) => !isOurs(nameOf(pair)));
  if (left.length === all.length) return header;
  const text = left.join(";").trim();
  return text === "" ? null : text;
};

/** Whether a Set-Cookie header of the app would set ours, one without a name and of our text included. */
export const setsPreviewCookie = (header: string): boolean =>
  isOurs(nameOf((header.split(";")[0] ?? "").replace(/^[\s=]+/, "")));

/** The query parameter that a link's secret stands in, on the preview's `/`. */
const PARAMETER = "platform_preview";

export const previewLink = (address: PreviewAddress, place: PreviewPlace, secret: string): string =>
  `${previewOrigin(address, place)}/?${PARAMETER}=${secret}`;

/** The secret of a link's request target; "" where it is no secret; null: no link at all. */
export const linkSecret = (target: string): string | null => {
  if (!target.startsWith("/?")) return null;
  const secret = new URLSearchParams(target.slice(2)).get(PARAMETER);
  return secret === null || SECRET.test(secret) ? secret : "";
};
