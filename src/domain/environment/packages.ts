/**
 * Package registries as sandboxes see them (docs/decisions/0077-package-cache.md), and the addresses of package files.
 *
 * A sandbox asks for packages over plain HTTP, because the egress proxy cannot see into TLS. npm keeps the registry's own name, so
 * lockfiles and credentials stay as they are outside. pip gets a name of the platform, for which alone it gives up TLS.
 */

/** The registries that have a cache. */
export const PACKAGE_KINDS = ["npm", "pypi"] as const;
export type PackageKind = (typeof PACKAGE_KINDS)[number];

/** The registries whose packages are cached, as URLs without a slash at the end. Null if it is not for this sandbox. */
export interface PackageSources {
  /** e.g. `https://npm.example.com` */
  readonly npm: string | null;
  /** The index, e.g. `https://pypi.example.com/simple` */
  readonly pypi: string | null;
}

/** The fault of a registry's URL, as the end of a sentence that begins with the setting's name. */
export const wrongSource = (text: string): string | null => {
  const url = URL.parse(text);
  if (url === null) return "is not a URL";
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    return "has credentials, a query or a fragment; expected a URL without them";
  return null;
};

/** The hosts of registries, as lists of hosts name them. Null if there is no registry. */
export const sourceHosts = (urls: readonly (string | null)[]): readonly string[] =>
  urls.flatMap((url) => URL.parse(url ?? "")?.hostname.replace(/^\[(.*)\]$/, "$1") ?? []);

/** Answers as a Python package index inside sandboxes. */
export const PYPI_HOST = "pypi.platform.internal";
/** The index's address inside sandboxes. */
export const PYPI_INDEX = `http://${PYPI_HOST}/simple/`;

/** The npm registry's address inside sandboxes: its own, over plain HTTP. Ends with a slash, as npm writes it. */
export const npmAddress = (npm: string): string => `${npm.replace(/^https:/, "http:")}/`;

/** A checksum of a whole file, in lower-case hexadecimal digits. */
export interface Checksum {
  readonly algorithm: "sha512" | "sha256";
  readonly hex: string;
}

const SHA256 = /^[0-9a-f]{64}$/;
const SHA512_BYTES = 64;

/**
 * A sha512 of npm's `dist.integrity`: checksums in base64, separated by blanks.
 * @returns null without a sha512, and if it has more than one
 */
export const readIntegrity = (integrity: string): Checksum | null => {
  const sha512Parts = integrity.split(/\s+/).filter((part) => part.startsWith("sha512-"));
  const [only] = sha512Parts;
  if (only === undefined || sha512Parts.length > 1) return null;
  const bytes = Buffer.from(only.slice("sha512-".length).split("?")[0] ?? "", "base64");
  return bytes.length === SHA512_BYTES ? { algorithm: "sha512", hex: bytes.toString("hex") } : null;
};

export interface NpmTarball {
  /** With its scope: `@scope/name`. */
  readonly name: string;
  readonly version: string;
}

const NPM_NAME = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?(?!\.{1,2}$)[A-Za-z0-9._~-]+$/;
const NPM_VERSION = /^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/;
const NPM_NAME_MAX = 214;

/** Whether a text can be the name of a package of npm, with its scope. */
export const isNpmName = (text: string): boolean => NPM_NAME.test(text) && text.length <= NPM_NAME_MAX;

/**
 * Reads the path of a tarball below a registry, as the client wrote it: `/name/-/name-1.0.0.tgz`.
 * @returns null for any other path, also for one with other escapes than `%2f` between scope and name
 */
export const readNpmTarball = (path: string): NpmTarball | null => {
  const [name = "", file = "", ...more] = path.slice(1).replace(/%2f/i, "/").split("/-/");
  if (more.length > 0 || !path.startsWith("/") || !isNpmName(name)) return null;
  const start = `${name.slice(name.indexOf("/") + 1)}-`;
  if (!file.startsWith(start) || !file.endsWith(".tgz")) return null;
  const version = file.slice(start.length, -".tgz".length);
  return NPM_VERSION.test(version) ? { name, version } : null;
};

/** The path of one version's description below a registry. */
export const npmVersionPath = ({ name, version }: NpmTarball): string =>
  `/${name.replace("/", "%2f")}/${encodeURIComponent(version)}`;

/** Whether two paths name the same file of a registry: they may write the scope's slash in two ways. */
export const isSameNpmPath = (one: string, other: string): boolean =>
  one.replace(/%2f/i, "/") === other.replace(/%2f/i, "/");

const FILES = "/files/";

/** The address of a file of an index inside sandboxes. It names the checksum, which the proxy compares. */
export const pypiFileAddress = (url: URL, sha256: string): string =>
  `http://${PYPI_HOST}${FILES}${sha256}/${url.protocol.slice(0, -1)}/${url.host}${url.pathname}`;

export interface PypiFile {
  readonly url: URL;
  readonly checksum: Checksum;
  /** The file's separate metadata, which has another checksum. */
  readonly isMetadata: boolean;
}

/**
 * Reads the path of `pypiFileAddress`, as the client wrote it.
 * @returns null for any other path
 */
export const readPypiFile = (path: string): PypiFile | null => {
  // pip writes a colon in a path as an escape.
  const match = /^\/files\/([^/]*)\/(https?)\/([A-Za-z0-9.-]+(?:(?::|%3a)\d{1,5})?)(\/[^?#]*)$/i.exec(path);
  const [, hex = "", scheme = "", host = "", file = ""] = match ?? [];
  const url = SHA256.test(hex) ? URL.parse(`${scheme}://${host.replace(/%3a/i, ":")}${file}`) : null;
  if (url === null) return null;
  return { url, checksum: { algorithm: "sha256", hex }, isMetadata: url.pathname.endsWith(".metadata") };
};

const PYPI_FILE = /\.(?:whl|zip|egg|tgz|tar\.(?:gz|bz2|xz))(?:\.metadata)?$/i;

/** Whether a path names a file of a Python package. Any other file of an index's host is not for sandboxes. */
export const isPypiFile = (path: string): boolean => PYPI_FILE.test(path);

/** The path of an index page below `/simple/`, with its slash. Empty: the list of all projects. Null means another path. */
export const readPypiProject = (path: string): string | null =>
  /^\/simple\/((?!\.{1,2}\/)[A-Za-z0-9._-]{1,200}\/|)$/.exec(path)?.[1] ?? null;

/** The sha256 that a file's link in an HTML index has in its fragment, or null. */
export const urlSha256 = (url: URL): string | null => {
  const hex = /^#sha256=([0-9a-f]+)$/i.exec(url.hash)?.[1]?.toLowerCase() ?? "";
  return SHA256.test(hex) ? hex : null;
};
