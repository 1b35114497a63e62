/**
 * The address of the operator's Postgres. DATABASE_URL has it, in each form that clients in Node take, and variables of
 * libpq fill in what it leaves out. Everyone who connects gets one form: a URL with everything in it.
 */
import * as Result from "effect/Result";
import type { Environment } from "./setting-reader.ts";

/** The variables, each with the parameter that it fills in and the part of the URL that has the same meaning. */
const VARIABLES = [
  { variable: "PGUSER", parameter: "user", part: "username" },
  { variable: "PGPASSWORD", parameter: "password", part: "password" },
  { variable: "PGHOST", parameter: "host", part: "hostname" },
  { variable: "PGPORT", parameter: "port", part: "port" },
  { variable: "PGDATABASE", parameter: "dbname", part: "pathname" },
  { variable: "PGSSLMODE", parameter: "sslmode", part: null },
  { variable: "PGOPTIONS", parameter: "options", part: null },
] as const;

const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full", "no-verify"];
/** What `ssl` alone means. */
const SSL: Readonly<Record<string, string>> = {
  true: "verify-full",
  "1": "verify-full",
  "no-verify": "no-verify",
  false: "disable",
  "0": "disable",
};
/** The service sets these limits itself, and its waits rely on them. */
const OWN_LIMITS = [
  "statement_timeout",
  "lock_timeout",
  "idle_in_transaction_session_timeout",
  "query_timeout",
];

/** The forms of an address as one. A socket's directory has no place for a host, and a password may have a bare `%`. */
const parse = (text: string): URL | null => {
  const [, directory, database] = /^(\/(?!\/)\S*)(?: (\S+))?$/.exec(text) ?? [];
  if (directory !== undefined)
    return new URL(`postgresql:///${database ?? ""}?host=${encodeURIComponent(directory)}`);
  const whole = text.startsWith("//") ? `postgresql:${text}` : text;
  const escapedAddress = whole.replace(/%(?![0-9a-f]{2})/gi, "%25");
  const url = URL.parse(escapedAddress) ?? URL.parse(escapedAddress.replace("@/", "@localhost/"));
  return url?.protocol === "socket:" ? socketUrl(url) : url;
};

/** `socket:/its/directory?db=name` */
const socketUrl = ({ pathname, searchParams, username, password }: URL): URL => {
  const url = new URL(`postgresql:///${searchParams.get("db") ?? ""}`);
  url.searchParams.set("host", decodeURI(pathname));
  if (username !== "") url.searchParams.set("user", decodeURIComponent(username));
  if (password !== "") url.searchParams.set("password", decodeURIComponent(password));
  return url;
};

const fillIn = (url: URL, environment: Environment): void => {
  for (const { variable, parameter, part } of VARIABLES) {
    const value = environment[variable] ?? "";
    const isThere = url.searchParams.has(parameter) || (part !== null && !/^\/?$/.test(url[part]));
    if (value !== "" && !isThere) url.searchParams.set(parameter, value);
  }
};

/** The expectation that the address does not meet. Null if it meets all. */
const addressRefusal = ({ searchParams }: URL, environment: Environment): string | null => {
  const limit = OWN_LIMITS.find((name) => searchParams.has(name));
  if (limit !== undefined) return `no ${limit}, which the service sets itself`;
  const negotiation = searchParams.get("sslnegotiation") ?? environment["PGSSLNEGOTIATION"] ?? "postgres";
  if (negotiation !== "postgres") return "sslnegotiation=postgres or none";
  const mode = searchParams.get("sslmode");
  return mode === null || SSL_MODES.includes(mode) ? null : `an sslmode of ${SSL_MODES.join(", ")}`;
};

/** Says `sslmode` for what else says it: `ssl`, certificates, and `uselibpqcompat`, which means as libpq. */
const sayMode = ({ searchParams }: URL): void => {
  const hasCertificates = ["sslrootcert", "sslcert", "sslkey"].some((name) => searchParams.has(name));
  const ssl = hasCertificates ? "verify-full" : SSL[searchParams.get("ssl") ?? ""];
  if (ssl !== undefined && !searchParams.has("sslmode")) searchParams.set("sslmode", ssl);
  if (searchParams.get("uselibpqcompat") !== "true") return;
  const mode = searchParams.get("sslmode");
  const isUnverified = mode === "prefer" || (mode === "require" && !searchParams.has("sslrootcert"));
  if (isUnverified) searchParams.set("sslmode", "no-verify");
};

/** @returns the whole address, or what was expected instead, without any part of a password. */
export const readDatabaseAddress = (
  text: string,
  environment: Environment,
): Result.Result<string, string> => {
  const url = parse(text);
  if (url === null || !/^postgres(?:ql)?:$/.test(url.protocol))
    return Result.fail(
      "the address of a Postgres database, for example postgres://user:password@db.example.com:5432/platform",
    );
  sayMode(url);
  fillIn(url, environment);
  const why = addressRefusal(url, environment);
  return why === null ? Result.succeed(url.href) : Result.fail(why);
};
