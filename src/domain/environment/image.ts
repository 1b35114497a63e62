/** References to images of sandboxes: what a project's manifest names, and under what an operator imports one. */

/** Longer references are refused. */
export const IMAGE_REFERENCE_MAX = 200;
/** As in container registries: an optional host, a path in lower case, an optional tag. */
const REFERENCE =
  /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::[0-9]{1,5}(?=\/))?(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*(?::[\w][\w.-]{0,127})?$/;

/** Whether a text can name an image, e.g. `node-tools`, `debian:12` or `images.example.com:5000/team/tools:3`. */
export const isImageReference = (text: string): boolean =>
  text.length <= IMAGE_REFERENCE_MAX && REFERENCE.test(text);

export const IMAGE_REFERENCE_RULE =
  "The name of an image has lower-case letters, digits and . _ - / and may end with a tag, e.g. node-tools or debian:12.";

/** The name of the image of a project's build. It is no reference, so neither a manifest nor an operator can name it. */
export const buildImageName = (buildId: string): string => `@build/${buildId}`;

/** The build whose image has this name. Null if it is a name that people gave. */
export const buildOfImageName = (name: string): string | null =>
  /^@build\/([0-9a-f-]{36})$/.exec(name)?.[1] ?? null;
