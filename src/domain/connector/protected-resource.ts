/** Where a server says which authorization server issues its tokens: its challenge (RFC 9110, 6750) and its metadata (RFC 9728). */

/** The longest header that is read. */
const CHALLENGE_MAX_LENGTH = 8192;

/** What the `WWW-Authenticate` header of a 401 says. */
export interface Challenge {
  /** The URL of the metadata. */
  readonly metadata: string | null;
  readonly scope: string | null;
}

/** One parameter: `name="quoted \" value"` or `name=value`. */
const PARAMETER = /([a-z_]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))/gi;

/** Reads the parameters of all challenges in a header. The first one of a name counts. */
export const readChallenge = (header: string | null): Challenge => {
  const parameters = new Map<string, string>();
  for (const [, name = "", quoted, plain = ""] of (header ?? "")
    .slice(0, CHALLENGE_MAX_LENGTH)
    .matchAll(PARAMETER)) {
    const key = name.toLowerCase();
    if (!parameters.has(key))
      parameters.set(key, quoted === undefined ? plain : quoted.replaceAll(/\\(.)/g, "$1"));
  }
  return { metadata: parameters.get("resource_metadata") ?? null, scope: parameters.get("scope") ?? null };
};

/** A well-known address of a document about a URL: the name stands before the URL's path. */
const wellKnown = (url: URL, name: string): string =>
  `${url.origin}/.well-known/${name}${url.pathname === "/" ? "" : url.pathname.replace(/\/$/, "")}`;

/** Where the metadata of a protected resource may be, in the order of preference. */
export const resourceMetadataUrls = (resource: string): readonly string[] => {
  const url = new URL(resource);
  return [
    ...new Set([
      wellKnown(url, "oauth-protected-resource"),
      `${url.origin}/.well-known/oauth-protected-resource`,
    ]),
  ];
};

/** Where the metadata of an authorization server may be, in the order of preference. */
export const serverMetadataUrls = (issuer: string): readonly string[] => {
  const url = new URL(issuer);
  const path = url.pathname.replace(/\/$/, "");
  return [
    ...new Set([
      wellKnown(url, "oauth-authorization-server"),
      wellKnown(url, "openid-configuration"),
      `${url.origin}${path}/.well-known/openid-configuration`,
    ]),
  ];
};

/** Whether metadata that names this resource speaks for the URL: one origin, and the URL's path begins with the resource's. */
export const coversUrl = (resource: string, url: string): boolean => {
  const [outer, inner] = [URL.parse(resource), new URL(url)];
  if (outer === null || outer.origin !== inner.origin) return false;
  const prefix = outer.pathname.endsWith("/") ? outer.pathname : `${outer.pathname}/`;
  return inner.pathname === outer.pathname || inner.pathname.startsWith(prefix);
};

/** The identifier of a server without metadata of its own: its URL, without a fragment. */
export const defaultResource = (url: string): string => {
  const resource = new URL(url);
  resource.hash = "";
  return resource.href;
};
