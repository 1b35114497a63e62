/** Branches that the service makes for changes of a trigger that a person describes. They stay, and are left out where people choose a branch. */

const NAME = /^(?:add|change|pause|resume|delete)-trigger-[a-z0-9_-]+-[0-9a-f]{8}$/;

/** @param verb what the change does, as one word @param id whose end makes the name new: an earlier branch stays */
export const wishBranch = (verb: string, slug: string, id: string): string =>
  `${verb.toLowerCase()}-trigger-${slug}-${id.slice(-8)}`;

export const isWishBranch = (name: string): boolean => NAME.test(name);
