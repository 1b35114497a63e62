/** References to images in registries, as Dockerfiles and devcontainer.json files write them. */

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
export const fullReference = (given: string): string | null => {
  if (given.length > REFERENCE_MAX || !REFERENCE.test(given)) return null;
  const [first = "", ...rest] = given.split("/");
  if (rest.length === 0) return `${DEFAULT_REGISTRY}/library/${given}`;
  return /[.:[]/.test(first) || first === "localhost" ? given : `${DEFAULT_REGISTRY}/${given}`;
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
export const taggedReference = (given: string): TaggedReference | null => {
  const full = fullReference(given);
  if (full === null || full.includes("@")) return null;
  const slash = full.indexOf("/");
  const [registry, rest] = [full.slice(0, slash), full.slice(slash + 1)];
  const [repository = "", tag = "latest"] = rest.split(":");
  // The API of the default registry has another host than its references.
  const host = registry === DEFAULT_REGISTRY ? `registry-1.${DEFAULT_REGISTRY}` : registry;
  return { text: `${registry}/${repository}:${tag}`, host, repository, tag };
};

/** Whether a text is a digest of an image, as this service keeps them. */
export const isImageDigest = (text: string): boolean => /^sha256:[0-9a-f]{64}$/.test(text);
