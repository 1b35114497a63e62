/**
 * Previews: a browser's access to a port inside a sandbox, each preview on an origin of its own (api.md 3). This file
 * recognises previews' hosts, and handles cookies between the browser and the app. Pure.
 */
import * as Result from "effect/Result";
import { parseUuid } from "../ids.ts";

/** The base address of previews: PLATFORM_PREVIEW_URL, or the service's own port below `localhost`. */
export interface PreviewAddress {
  readonly scheme: "http" | "https";
  /** The part after a host's first label, e.g. `.localhost`; lower case. */
  readonly suffix: string;
  /** As it appears in a URL: `:8080`, or empty for the scheme's default port. */
  readonly port: string;
}

/** The target of one preview. */
export interface PreviewPlace {
  readonly sessionId: string;
  /** The port inside the sandbox. */
  readonly port: number;
}

const DEFAULT_PORTS = { http: 80, https: 443 } as const;
const MAX_PORT = 65_535;
const EXPECTED = "an http or https URL whose host begins with `*.`, without a path";
const WILDCARD = /^(https?):\/\/\*((?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+)(?::([1-9][0-9]{0,4}))?\/?$/i;
/** A host name has at most 253 characters. The longest first label, `p65535-` and a UUID, takes 43. */
const LONGEST_SUFFIX = 253 - 43;

const portPart = (scheme: "http" | "https", port: number): string =>
  port === DEFAULT_PORTS[scheme] ? "" : `:${port}`;

/**
 * Reads a wildcard address, e.g. `https://*.preview.example.com`.
 *
 * @returns the address, or a description of the expected form.
 */
export const parsePreviewUrl = (text: string): Result.Result<PreviewAddress, string> => {
  const [, protocol = "", suffix = "", digits] = WILDCARD.exec(text) ?? [];
  const scheme = protocol.toLowerCase() === "https" ? "https" : "http";
  const port = digits === undefined ? DEFAULT_PORTS[scheme] : Number(digits);
  // Browsers read a name that ends in a number as an IPv4 address.
  if (protocol === "" || port > MAX_PORT || suffix.length > LONGEST_SUFFIX || /\.\d+$/.test(suffix)) {
    return Result.fail(EXPECTED);
  }
  return Result.succeed({ scheme, suffix: suffix.toLowerCase(), port: portPart(scheme, port) });
};

/** Previews below `localhost`, which browsers resolve to this machine without DNS. */
export const localPreviews = (port: number): PreviewAddress => ({
  scheme: "http",
  suffix: ".localhost",
  port: portPart("http", port),
});

/** A preview's Host header, as browsers write it. */
export const previewHost = (address: PreviewAddress, { port, sessionId }: PreviewPlace): string =>
  `p${port}-${sessionId}${address.suffix}${address.port}`;

export const previewOrigin = (address: PreviewAddress, place: PreviewPlace): string =>
  `${address.scheme}://${previewHost(address, place)}`;

/**
 * What a Host header names. A preview: its one exact form, in any letter case. `stranger`: another name below the
 * previews' domain. Null means another host of the service.
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

/**
 * Over https, the `__Host-` prefix makes the browser refuse this cookie from any other host and from pages without TLS.
 */
export const previewCookieName = ({ scheme }: PreviewAddress): string =>
  scheme === "https" ? `${HOST_PREFIX}${COOKIE}` : COOKIE;

/** Our cookie's names in either form. Some browsers accept the prefix in any letter case. */
const isOurs = (name: string): boolean => {
  const lower = name.toLowerCase();
  return lower === COOKIE || lower === `${HOST_PREFIX}${COOKIE}`.toLowerCase();
};

const cookieName = (pair: string): string => (pair.split("=")[0] ?? "").trim();

/** A secret of 256 bits in base64url. Links and cookies carry one. */
const SECRET = /^[A-Za-z0-9_-]{43}$/;
/**
 * A page can set cookies of our name for a path of its own, or from a sibling of a wildcard domain. At most this many
 * candidates are checked.
 */
const CANDIDATES_MAX = 4;

/** Values in a Cookie header that may be the preview's, in order. */
export const previewCookies = (address: PreviewAddress, header: string): readonly string[] => {
  const name = previewCookieName(address);
  return header
    .split(";")
    .filter((pair) => cookieName(pair) === name)
    .map((pair) => pair.slice(pair.indexOf("=") + 1).trim())
    .filter((value) => SECRET.test(value))
    .slice(0, CANDIDATES_MAX);
};

/** A Cookie header for the app, without our cookies. Null if nothing is left. */
export const withoutPreviewCookie = (header: string): string | null => {
  const all = header.split(";");
  const others = all.filter((pair) => !isOurs(cookieName(pair)));
  if (others.length === all.length) return header;
  const text = others.join(";").trim();
  return text === "" ? null : text;
};

/** Whether the app's Set-Cookie header would set our cookie. Also true for a nameless cookie whose text is our name. */
export const setsPreviewCookie = (header: string): boolean =>
  isOurs(cookieName((header.split(";")[0] ?? "").replace(/^[\s=]+/, "")));

/** The query parameter on the preview's `/` that carries a link's secret. */
const PARAMETER = "platform_preview";

export const previewLink = (address: PreviewAddress, place: PreviewPlace, secret: string): string =>
  `${previewOrigin(address, place)}/?${PARAMETER}=${secret}`;

/** The secret in a link's request target. "" if its form is invalid; null if the target is not a link. */
export const linkSecret = (target: string): string | null => {
  if (!target.startsWith("/?")) return null;
  const secret = new URLSearchParams(target.slice(2)).get(PARAMETER);
  return secret === null || SECRET.test(secret) ? secret : "";
};
