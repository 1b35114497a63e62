/** Types of a file that is not in this folder: the service serves it from the package (src/http/pages/dashboard.ts). */
export type { Token } from "markdown-it";
// eslint-disable-next-line import/no-default-export -- the package has no other export
export { default } from "markdown-it";
