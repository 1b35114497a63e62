/** The calls of `platform people` and `platform members`: see rows.ts. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { expectStatus, fields, invitePerson } from "../support/service/requests.ts";
import { ID, type Row, type World } from "./row.ts";

const notFound = (what: string): RegExp => new RegExp(`^${what} not found\\.\n$`);

export const peopleRows = (world: World): Readonly<Record<string, Row>> => {
  const person = async (): Promise<string> => (await invitePerson(world.service, "Ada")).id;
  const invitation = async (): Promise<string> => {
    const made = await world.service.request("POST", "/v1/invitations", { body: { name: "Ada" } });
    return String(fields(expectStatus(made, 201))["id"]);
  };
  return {
    audit: {
      args: async () => (await invitation(), ["--action", "invitation.created", "--limit", "1"]),
      human: new RegExp(
        `^AT +WHO +ACTION +TARGET +OUTCOME +ADDRESS\n\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\dZ +admin +invitation.created +${ID} +done +127.0.0.1\n$`,
      ),
      json: "/v1/audit?action=invitation.created&limit=1",
      refused: [["--since", "yesterday"], 2, /^--since must be a day or an instant, such as 2027/],
    },
    "people list": {
      args: () => ["--limit", "1"],
      human: new RegExp(`^PERSON +ROLE +SINCE +DEACTIVATED +NAME\n${ID} +`),
      json: "/v1/people?limit=1",
      refused: [["--limit", "0"], 2, /^--limit must be a number of 1 or more\./],
    },
    "people invite": {
      args: () => ["Eve", "--in", world.pid, "--as", "viewer"],
      human: /^http\S+\/#\/join\/\S+\n$/,
      json: { name: "Eve", url: expect.stringContaining("/#/join/") as string },
      refused: [["Eve", "--as", "viewer"], 2, /^Give --in and --as together\./],
    },
    "people invitations": {
      args: async () => {
        await invitation();
        return ["--limit", "1"];
      },
      human: new RegExp(`^INVITATION +ROLE +EXPIRES +PROJECTS +NAME\n${ID} +member`),
      json: "/v1/invitations?limit=1",
      refused: [["--cursor", "x"], 1, /^`cursor` must be the cursor of an earlier page\./],
    },
    "people revoke": {
      args: async () => [await invitation()],
      human: new RegExp(`^${ID} revoked\n$`),
      json: {},
      refused: [[randomUUID()], 4, notFound("Invitation")],
    },
    "people role": {
      args: async () => [await person(), "owner"],
      human: new RegExp(`^${ID} Ada: owner\n$`),
      json: { name: "Ada", role: "owner" },
      refused: [[randomUUID(), "chief"], 2, /^ROLE must be one of member, owner\./],
    },
    "people deactivate": {
      args: async () => [await person()],
      human: new RegExp(`^${ID} Ada: member, deactivated\n$`),
      json: { name: "Ada" },
      refused: [[randomUUID()], 4, notFound("Person")],
    },
    "people reactivate": {
      args: async () => [await person()],
      human: new RegExp(`^${ID} Ada: member\n$`),
      json: { name: "Ada", deactivated_at: null },
      refused: [[randomUUID()], 4, notFound("Person")],
    },
    "members list": {
      args: () => [],
      human: new RegExp(`^PERSON +ROLE +OWN +NAME\n${ID} +`),
      json: () => `/v1/projects/${world.pid}/members`,
      refused: [["--project", randomUUID()], 4, notFound("Project")],
    },
    "members set": {
      args: async () => [await person(), "viewer"],
      human: new RegExp(`^${ID} viewer\n$`),
      json: {},
      refused: [[randomUUID(), "viewer"], 4, notFound("Person")],
    },
    "members remove": {
      args: async () => [await person()],
      human: new RegExp(`^${ID} removed\n$`),
      json: {},
      refused: [[randomUUID()], 4, notFound("Person")],
    },
  };
};
