/** `platform activity`: what happened in all projects. */
import { entrySubject, entryText } from "../../domain/service/news-words.ts";
import { command } from "../../cli/command.ts";
import { page, pageOptions, pageOutcome } from "../../cli/commands/lists.ts";
import { table, time } from "../../cli/terminal.ts";

const activity = command({
  name: "activity",
  about: "List what happened in your projects, newest first",
  options: {
    own: { about: "Only what is about your own sessions and change requests, or asks you" },
    ...pageOptions,
  },
  run: async ({ options, note, api }) => {
    const answer = await api().call("GET /v1/activity", {
      query: { ...page(options), ...(options.own && { own: "true" as const }) },
    });
    const rows = answer.value.entries.map((entry) => [
      time(entry.at),
      entry.project.name,
      entrySubject(entry),
      [entryText(entry, null), entry.code].filter((part) => part !== null).join(": "),
    ]);
    return pageOutcome(answer, table(["AT", "PROJECT", "ABOUT", "WHAT"], rows, "Nothing happened."), note);
  },
});

export const activityCommands = [activity];
