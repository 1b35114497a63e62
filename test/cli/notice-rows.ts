/** The rows of `platform notices` (rows.ts). */
import { expectStatus } from "../support/service/requests.ts";
import { type Row, type World } from "./fixtures/row.ts";

const CHAT = "https://hooks.slack.com/services/T000/B000/canary";
const HEAD = "PLACE +STATUS +TELLS +LAST +ADDRESS";
const KINDS = /^Each of --tells must be one of asked, finished\.\n/;
const PLACES = /`place` must be "mail" or "chat"\./;

export const noticeRowsOf = (world: World): Readonly<Record<string, Row>> => {
  const put = async (place: string, body: object): Promise<string> => {
    await world.mailbox();
    expectStatus(await world.service.request("PUT", `/v1/me/notices/${place}`, { body }), 200);
    return place;
  };
  const mail = () => put("mail", { tells: ["asked"] });
  const chat = () => put("chat", { tells: ["asked"], format: "slack", url: CHAT });
  return {
    "notices show": {
      args: async () => (await mail(), []),
      human: new RegExp(`^${HEAD}\nmail +enabled +asked +- +ada@example\\.org\nchat `),
      json: "/v1/me/notices",
      refused: [["x"], 2, /./],
    },
    "notices mail": {
      args: async () => (await world.mailbox(), ["--tells", "finished,asked"]),
      human: /\nmail +enabled +finished, asked +- +ada@example\.org\n/,
      json: "/v1/me/notices",
      refused: [["--tells", "all"], 2, KINDS],
    },
    "notices chat": {
      args: () => ["--format", "slack", "--url-file", "-"],
      input: `${CHAT}\n`,
      human: /\nchat +enabled +asked, finished +- +https:\/\/hooks\.slack\.com\/…nary \(slack\)\n$/,
      json: "/v1/me/notices",
      refused: [["--format", "slack"], 2, /^Give --format and --url-file together\.\n/],
    },
    "notices off": {
      args: async () => [await chat()],
      human: /^chat is off\n$/,
      json: {},
      refused: [["nowhere"], 1, PLACES],
    },
    "notices test": {
      args: async () => [await mail()],
      human: /^answered 250 after \d+ ms\n250 2\.0\.0 taken\n$/,
      json: { delivered: true, status: 250, error: null },
      refused: [["nowhere"], 1, PLACES],
    },
  };
};
