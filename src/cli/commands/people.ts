/** `platform people` and `platform members`: people, invitations, and roles in the account and in projects. */
import type { AccountRole, ProjectRole } from "../../domain/person/role.ts";
import { command } from "../command.ts";
import type { Answer } from "../contract.ts";
import { usage } from "../failure.ts";
import { table, time, timeOrDash, visible } from "../terminal.ts";
import { anyId, oneOf, projectId } from "../words.ts";
import { page, pageOptions, pageOutcome } from "./lists.ts";

const ACCOUNT_ROLES = ["member", "owner"] as const satisfies readonly AccountRole[];
const PROJECT_ROLES = ["viewer", "member", "owner"] as const satisfies readonly ProjectRole[];
const PERSON = "PERSON is the id from `platform people list`.";

type Person = Answer<"PATCH /v1/people/:id">;

const line = ({ id, name, role, deactivated_at: ended }: Person): string =>
  visible(`${id} ${name}: ${role}${ended === null ? "" : ", deactivated"}`);

const list = command({
  name: "people list",
  about: "List the people of the account, newest first",
  options: pageOptions,
  run: async ({ options, note, api }) => {
    const answered = await api().call("GET /v1/people", { query: page(options) });
    const rows = answered.value.people.map((person) => [
      person.id,
      person.role,
      time(person.created_at),
      timeOrDash(person.deactivated_at),
      person.name,
    ]);
    const columns = ["PERSON", "ROLE", "SINCE", "DEACTIVATED", "NAME"];
    return pageOutcome(answered, table(columns, rows, "No people."), note);
  },
});

const invite = command({
  name: "people invite",
  about: "Invite a person. Prints a link that works once, within seven days",
  takes: ["NAME"],
  options: {
    role: { value: "ROLE", about: "In the account: member (default) or owner" },
    in: { value: "PROJECT", about: "Also give a role in this project" },
    as: { value: "ROLE", about: "The role there: viewer, member or owner" },
  },
  run: async ({ given, options, note, api }) => {
    const role = oneOf(options.role, ACCOUNT_ROLES, "--role");
    const own = oneOf(options.as, PROJECT_ROLES, "--as");
    if ((options.in === undefined) !== (own === undefined)) throw usage("Give --in and --as together.");
    const project = options.in === undefined ? null : projectId(options.in, "--in");
    const { value, text } = await api().call("POST /v1/invitations", {
      payload: {
        name: given.NAME,
        ...(role !== undefined && { role }),
        ...(project !== null && own !== undefined && { projects: [{ project_id: project, role: own }] }),
      },
    });
    note(`Invitation ${value.id}, until ${time(value.expires_at)}. Send this link to the person:`);
    return { json: text, text: visible(value.url) };
  },
});

const invitations = command({
  name: "people invitations",
  about: "List the invitations that can still be accepted",
  options: pageOptions,
  run: async ({ options, note, api }) => {
    const answered = await api().call("GET /v1/invitations", { query: page(options) });
    const rows = answered.value.invitations.map((invitation) => [
      invitation.id,
      invitation.role,
      time(invitation.expires_at),
      String(invitation.projects.length),
      invitation.name,
    ]);
    const columns = ["INVITATION", "ROLE", "EXPIRES", "PROJECTS", "NAME"];
    return pageOutcome(answered, table(columns, rows, "No open invitations."), note);
  },
});

const revoke = command({
  name: "people revoke",
  about: "Revoke an invitation. Its link stops working at once",
  takes: ["INVITATION"],
  run: async ({ given, api }) => {
    const id = anyId(given.INVITATION, "INVITATION");
    const { text } = await api().call("DELETE /v1/invitations/:id", { params: { id } });
    return { json: text, text: `${id} revoked` };
  },
});

const role = command({
  name: "people role",
  about: "Make a person an owner or a member of the account",
  takes: ["PERSON", "ROLE"],
  notes: PERSON,
  run: async ({ given, api }) => {
    const id = anyId(given.PERSON, "PERSON");
    const wanted = oneOf(given.ROLE, ACCOUNT_ROLES, "ROLE");
    const { value, text } = await api().call("PATCH /v1/people/:id", {
      params: { id },
      payload: { ...(wanted !== undefined && { role: wanted }) },
    });
    return { json: text, text: line(value) };
  },
});

const deactivate = command({
  name: "people deactivate",
  about: "End a person's tokens and sessions. Her work and her name stay",
  asks: "End the person's tokens and sessions?",
  takes: ["PERSON"],
  notes: PERSON,
  run: async ({ given, api }) => {
    const id = anyId(given.PERSON, "PERSON");
    const { value, text } = await api().call("POST /v1/people/:id/deactivate", { params: { id } });
    return { json: text, text: line(value) };
  },
});

const reactivate = command({
  name: "people reactivate",
  about: "Give a deactivated person her roles back. She needs a new token",
  takes: ["PERSON"],
  notes: PERSON,
  run: async ({ given, api }) => {
    const id = anyId(given.PERSON, "PERSON");
    const { value, text } = await api().call("POST /v1/people/:id/reactivate", { params: { id } });
    return { json: text, text: line(value) };
  },
});

const members = command({
  name: "members list",
  about: "List the people who have a role in a project",
  inProject: true,
  run: async ({ api, project }) => {
    const params = { pid: await project() };
    const { value, text } = await api().call("GET /v1/projects/:pid/members", { params });
    const rows = value.members.map(({ user, role: held, own_role: own }) => [
      user.id,
      held,
      own ?? "-",
      user.name,
    ]);
    return { json: text, text: table(["PERSON", "ROLE", "OWN", "NAME"], rows, "No members.") };
  },
});

const setMember = command({
  name: "members set",
  about: "Give a person a role in a project: viewer, member or owner",
  takes: ["PERSON", "ROLE"],
  inProject: true,
  notes: PERSON,
  run: async ({ given, api, project }) => {
    const id = anyId(given.PERSON, "PERSON");
    const wanted = oneOf(given.ROLE, PROJECT_ROLES, "ROLE") ?? PROJECT_ROLES[0];
    const { text } = await api().call("PUT /v1/projects/:pid/members/:id", {
      params: { pid: await project(), id },
      payload: { role: wanted },
    });
    return { json: text, text: `${id} ${wanted}` };
  },
});

const removeMember = command({
  name: "members remove",
  about: "Remove a person's own role in a project. The project's default role stays",
  takes: ["PERSON"],
  inProject: true,
  notes: PERSON,
  run: async ({ given, api, project }) => {
    const id = anyId(given.PERSON, "PERSON");
    const params = { pid: await project(), id };
    const { text } = await api().call("DELETE /v1/projects/:pid/members/:id", { params });
    return { json: text, text: `${id} removed` };
  },
});

export const peopleCommands = [
  list,
  invite,
  invitations,
  revoke,
  role,
  deactivate,
  reactivate,
  members,
  setMember,
  removeMember,
];
