/** Types of files that are not in this folder: the service takes them from their packages (src/http/pages/page-files.ts). */
export { Terminal } from "@xterm/xterm";
