/** `platform activity`: what happened in all projects. */
import { endpoint } from "../../cli/endpoint/endpoint.ts";
import { entrySubject, entryText } from "../../domain/service/news-words.ts";

const activity = endpoint("GET /v1/activity", {
  name: "activity",
  about: "List what happened in your projects, newest first",
  options: {
    own: {
      about: "Only what is about your own sessions and change requests, or asks you",
      to: "true",
    },
  },
  rows: "entries",
  columns: {
    AT: "at",
    PROJECT: ({ project }) => project.name,
    ABOUT: entrySubject,
    WHAT: (entry) => [entryText(entry, null), entry.code].filter((part) => part !== null).join(": "),
  },
  none: "Nothing happened.",
});

export const activityCommands = [activity];
