/**
 * `platform subscriptions`: a person's own subscriptions at the makers of agent runtimes. A token comes from standard input, and a file by its
 * path: every program on the machine can see arguments.
 */
import type { Answer } from "../../cli/contract.ts";
import { endpoint } from "../../cli/endpoint/endpoint.ts";
import { usageFailure } from "../../cli/failure.ts";
import { fieldLines, timeOrDash } from "../../cli/terminal.ts";

type Possible = Answer<"GET /v1/me/subscriptions">["possible"][number];

const howTo = ({ runtime, title, how, file }: Possible): string =>
  file === null
    ? `${title}: run ${how}, then: platform subscriptions save ${runtime}`
    : `${title}: run ${how}, then: platform subscriptions save ${runtime} --file ~/${file}`;

const list = endpoint("GET /v1/me/subscriptions", {
  name: "subscriptions list",
  about: "List your own subscriptions, and how to save one; their contents are never shown",
  rows: "subscriptions",
  columns: {
    RUNTIME: "runtime",
    SUBSCRIPTION: "title",
    SAVED: "saved_at",
    RENEWED: "renewed_at",
    USED: "used_at",
  },
  none: "No subscriptions.",
  below: ({ subscriptions, possible }) =>
    possible.filter((one) => !subscriptions.some(({ runtime }) => runtime === one.runtime)).map(howTo),
});

const save = endpoint("PUT /v1/me/subscriptions/:runtime", {
  name: "subscriptions save",
  about: "Save your own subscription for a runtime: a token from standard input, or a file",
  takes: ["RUNTIME"],
  options: { file: { value: "FILE", about: "Take the file's content", sets: null } },
  notes:
    "Only sessions that you start use it, while you alone steer them. It is not tried: the first turn says whether the maker takes it.",
  sends: async ({ options: { file }, input }) => {
    const content = await input.secret("Token (not shown): ", file, "--file");
    if (content.trim() === "") throw usageFailure("The token or the file is empty.");
    return { payload: { content } };
  },
  shows: ({ runtime, title, saved_at: saved }) =>
    fieldLines([
      ["runtime", runtime],
      ["subscription", title],
      ["saved", timeOrDash(saved)],
    ]),
});

const remove = endpoint("DELETE /v1/me/subscriptions/:runtime", {
  name: "subscriptions remove",
  about: "Remove your own subscription. It is taken out of your running sessions",
  asks: "Remove the subscription?",
  takes: ["RUNTIME"],
  done: "removed",
});

export const subscriptionCommands = [list, save, remove];
