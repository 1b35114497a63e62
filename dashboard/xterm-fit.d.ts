/** Types of a file that is not in this folder: the service takes it from its package (src/http/pages/page-files.ts). */
export { FitAddon } from "@xterm/addon-fit";
