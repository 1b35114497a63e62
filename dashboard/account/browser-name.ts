/** The names that browsers give themselves, the special ones first: each one also claims to be an older one. */
const NAMES = ["Edg", "OPR", "Firefox", "Chrome", "Safari", "curl"];

/** @param agent what it sends as its user agent */
export const browserName = (agent: string | null): string =>
  NAMES.find((name) => agent?.includes(`${name}/`))?.replace("Edg", "Edge") ?? "Browser";
