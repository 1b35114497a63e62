/** References to images in registries, as Dockerfiles and devcontainer.json files write them. */
import * as Result from "effect/Result";

/** The longest reference, in characters. */
const REFERENCE_MAX = 500;
const NAME_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
/** As registries have it: an optional host, a path in lower case, a tag, a digest. Nothing that a Dockerfile could misread. */
const REFERENCE = new RegExp(
  `^(?:(?:[A-Za-z0-9.-]+|\\[[0-9A-Fa-f:]+\\])(?::[0-9]{1,5})?/)?${NAME_PART}(?:/${NAME_PART})*` +
    `(?::[\\w][\\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`,
);

/** The registry of references without a host. */
const DEFAULT_REGISTRY = "docker.io";

/**
 * The reference with its registry, as container engines read it: `node:24` is one of Docker's own images.
 * @returns null if it is no reference
 */
export const fullReference = (reference: string): string | null => {
  if (reference.length > REFERENCE_MAX || !REFERENCE.test(reference)) return null;
  const [first = "", ...rest] = reference.split("/");
  if (rest.length === 0) return `${DEFAULT_REGISTRY}/library/${reference}`;
  return /[.:[]/.test(first) || first === "localhost" ? reference : `${DEFAULT_REGISTRY}/${reference}`;
};

/** A tag of a repository, which may stand for another image tomorrow. */
export interface TaggedReference {
  /** With the registry and the tag, e.g. `images.example.com/team/tools:1`. */
  readonly text: string;
  /** Of the registry's API, with a port if it is not 443. */
  readonly host: string;
  /** The path without the host. */
  readonly repository: string;
  readonly tag: string;
}

/**
 * The tag that a reference names. Without a tag it is `latest`.
 * @returns null if it is no reference, or names a digest, which always stands for the same image
 */
export const taggedReference = (reference: string): TaggedReference | null => {
  const full = fullReference(reference);
  // A name that begins with a point is a path.
  if (full === null || full.includes("@") || full.startsWith(".")) return null;
  const slash = full.indexOf("/");
  const [registry, rest] = [full.slice(0, slash), full.slice(slash + 1)];
  const [repository = "", tag = "latest"] = rest.split(":");
  // The API of the default registry has another host than its references.
  const host = registry === DEFAULT_REGISTRY ? `registry-1.${DEFAULT_REGISTRY}` : registry;
  return { text: `${registry}/${repository}:${tag}`, host, repository, tag };
};

/** Whether a text is a digest of an image, as this service keeps them. */
export const isImageDigest = (text: string): boolean => /^sha256:[0-9a-f]{64}$/.test(text);

/** Where an operator keeps images for a cluster. */
export interface RegistryLocation {
  /** `https://…`, or `http://…` if the operator wrote that. */
  readonly origin: string;
  /** The path of all images, e.g. `team/platform`. */
  readonly repository: string;
}

const LOCATION_RULE =
  "a registry's host and a path in lower case, for example images.example.com/team/platform, with http:// before it only if the registry has no TLS";

/** Reads the place in a registry that a setting names. @returns the place, or the expected form, as it stands after "expected". */
export const readRegistryLocation = (text: string): Result.Result<RegistryLocation, string> => {
  const [, scheme = "https", rest = ""] = /^(?:(https?):\/\/)?(.*)$/s.exec(text) ?? [];
  const slash = rest.indexOf("/");
  const [host, repository] = [rest.slice(0, slash), rest.slice(slash + 1)];
  const isPath = new RegExp(`^${NAME_PART}(?:/${NAME_PART})*$`).test(repository);
  const url = URL.parse(`${scheme}://${host}`);
  return slash > 0 &&
    isPath &&
    text.length <= REFERENCE_MAX &&
    url !== null &&
    url.host === host.toLowerCase()
    ? Result.succeed({ origin: url.origin, repository })
    : Result.fail(LOCATION_RULE);
};
