/** The base images of a build, and whether they have changed since. */

/** A tag from which a build was made. */
export interface BuildBase {
  /** With registry and tag, e.g. `images.example.com/team/tools:1`. */
  readonly reference: string;
  /** What the tag stood for when the build began. Null if the registry did not say. */
  readonly digest: string | null;
}

/**
 * Whether a tag stands for another image than at the build. A digest that is not known, then or now, says nothing.
 * @param newest what registries said last
 */
export const hasNewerBase = (bases: readonly BuildBase[], newest: readonly BuildBase[]): boolean => {
  const now = new Map(newest.map(({ reference, digest }) => [reference, digest]));
  return bases.some(({ reference, digest }) => {
    const current = now.get(reference) ?? null;
    return digest !== null && current !== null && current !== digest;
  });
};
