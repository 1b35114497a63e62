/** `platform sessions saves`, `turns` and `forget-save`: the space that saved work takes, where a session can begin, and the end of an earlier save. */
import type { Client } from "../../client.ts";
import { command } from "../../command.ts";
import { EXIT, Failure } from "../../failure.ts";
import { mebibytes, table, time, visible } from "../../terminal.ts";
import { anyId, sessionId } from "../../words.ts";

/** In place of an empty list: whether a node could not be asked. */
const NONE = { all: "No saved work.", away: "No saved work on the nodes that can be reached." } as const;

const list = command({
  name: "sessions saves",
  about: "List how much space the saved work of a project's sessions takes, largest first",
  inProject: true,
  notes: "`platform sessions delete` deletes a session with its saved work.",
  run: async ({ api, project }) => {
    const { value, text } = await api().call("GET /v1/projects/:pid/saves", {
      params: { pid: await project() },
    });
    const rows = value.sessions.map(({ id, bytes, status, name }) => [
      id,
      mebibytes(bytes),
      status,
      name ?? "",
    ]);
    const sizes = table(
      ["SESSION", "SIZE", "STATUS", "NAME"],
      rows,
      NONE[value.away.length > 0 ? "away" : "all"],
    );
    const missing = value.away.map((node) => visible(`Not counted: node ${node} cannot be reached now.`));
    return { json: text, text: [sizes, ...missing].join("\n") };
  },
});

/** The message of a turn that is older than the newest items. Empty: its message had no text, or is gone. */
const olderText = async (
  client: Client,
  params: { readonly pid: string; readonly sid: string; readonly id: string },
) => {
  try {
    return (await client.call("GET /v1/projects/:pid/sessions/:sid/items/:id/text", { params })).value;
  } catch (error) {
    if (error instanceof Failure && error.exit === EXIT.notFound) return "";
    throw error;
  }
};

const turns = command({
  name: "sessions turns",
  about: "List the turns of a session from whose saved work another session can start, the oldest first",
  takes: ["SESSION"],
  inProject: true,
  notes: "`platform sessions create --from SESSION --turn TURN` starts one.",
  run: async ({ given, api, project }) => {
    const params = { pid: await project(), sid: sessionId(given.SESSION) };
    const { value, text } = await api().call("GET /v1/projects/:pid/sessions/:sid/saves", { params });
    const { value: newest } = await api().call("GET /v1/projects/:pid/sessions/:sid/conversation", {
      params,
      query: { limit: 200 },
    });
    const said = new Map(
      newest.items.flatMap(({ id, content: [first] }) => (first?.type === "text" ? [[id, first.text]] : [])),
    );
    const rows: string[][] = [];
    for (const { id, at } of value.turns) {
      // oxlint-disable-next-line no-await-in-loop -- few turns are older than the newest items
      rows.push([id, time(at), said.get(id) ?? (await olderText(api(), { ...params, id }))]);
    }
    return { json: text, text: table(["TURN", "SAVED", "MESSAGE"], rows, "No turn is saved.") };
  },
});

const forget = command({
  name: "sessions forget-save",
  about: "Delete an earlier save of a session",
  asks: "Delete this saved work?",
  takes: ["SESSION", "SAVE"],
  inProject: true,
  notes:
    "`platform sessions show` lists earlier saves with their ids. Work that only this save has cannot be restored. The newest save stays.",
  run: async ({ given, api, project }) => {
    const { text } = await api().call("DELETE /v1/projects/:pid/sessions/:sid/saves/:id", {
      params: { pid: await project(), sid: sessionId(given.SESSION), id: anyId(given.SAVE, "SAVE") },
    });
    return { json: text, text: visible(`${given.SAVE} deleted`) };
  },
});

export const saveCommands = [list, turns, forget];
