/** `platform sessions saves`, `turns` and `forget-save`: the space that saved work takes, where a session can begin, and the end of an earlier save. */
import type { Client } from "../../client.ts";
import { recordTable } from "../../endpoint/columns.ts";
import { endpoint } from "../../endpoint/endpoint.ts";
import { EXIT, Failure } from "../../failure.ts";
import { mebibytes, table, time, safeLine } from "../../terminal.ts";
import { sessionId } from "../../words.ts";

/** In place of an empty list: whether a node could not be asked. */
const NONE = { all: "No saved work.", away: "No saved work on the nodes that can be reached." } as const;

const list = endpoint("GET /v1/projects/:pid/saves", {
  name: "sessions saves",
  about: "List how much space the saved work of a project's sessions takes, largest first",
  notes: "`platform sessions delete` deletes a session with its saved work.",
  shows: ({ sessions, away }) =>
    [
      recordTable(
        {
          SESSION: "id",
          SIZE: ({ bytes }) => mebibytes(bytes),
          STATUS: "status",
          NAME: ({ name }) => name ?? "",
        },
        sessions,
        NONE[away.length > 0 ? "away" : "all"],
      ),
      ...away.map((node) => safeLine(`Not counted: node ${node} cannot be reached now.`)),
    ].join("\n"),
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

const turns = endpoint("GET /v1/projects/:pid/sessions/:sid/saves", {
  name: "sessions turns",
  about: "List the turns of a session from whose saved work another session can start, the oldest first",
  takes: ["SESSION"],
  notes: "`platform sessions create --from SESSION --turn TURN` starts one.",
  shows: async (answer, { given, api, project }) => {
    const params = { pid: await project(), sid: sessionId(given.SESSION) };
    const { value: newest } = await api().call("GET /v1/projects/:pid/sessions/:sid/conversation", {
      params,
      query: { limit: 200 },
    });
    const messages = new Map(
      newest.items.flatMap(({ id, content: [first] }) => (first?.type === "text" ? [[id, first.text]] : [])),
    );
    const rows: string[][] = [];
    for (const { id, at } of answer.turns) {
      // oxlint-disable-next-line no-await-in-loop -- few turns are older than the newest items
      rows.push([id, time(at), messages.get(id) ?? (await olderText(api(), { ...params, id }))]);
    }
    return table(["TURN", "SAVED", "MESSAGE"], rows, "No turn is saved.");
  },
});

const forget = endpoint("DELETE /v1/projects/:pid/sessions/:sid/saves/:id", {
  name: "sessions forget-save",
  about: "Delete an earlier save of a session",
  asks: "Delete this saved work?",
  takes: ["SESSION", "SAVE"],
  notes:
    "`platform sessions show` lists earlier saves with their ids. Work that only this save has cannot be restored. The newest save stays.",
  done: "deleted",
});

export const saveCommands = [list, turns, forget];
