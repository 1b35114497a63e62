/** `platform open`: the page in a browser. */
import { command } from "../command.ts";
import { openAddress } from "../programs.ts";
import { safeLine } from "../terminal.ts";

/** The address of a session's page. */
export const sessionPage = (page: string, { pid, sid }: { readonly pid: string; readonly sid: string }) =>
  `${page}/#/projects/${pid}/sessions/${sid}`;

export const open = command({
  name: "open",
  about: "Open the page in a browser: all sessions, or one",
  takes: ["[SESSION]"],
  inProject: true,
  notes: "It prints the address, and opens it if this computer has a screen.",
  run: async ({ given, environment, json, api, project }) => {
    const { page } = api();
    const sid = given.SESSION;
    const address = sid === undefined ? `${page}/` : sessionPage(page, { pid: await project(), sid });
    if (!json) openAddress(address, environment);
    return { json: JSON.stringify({ url: address }), text: safeLine(address) };
  },
});
