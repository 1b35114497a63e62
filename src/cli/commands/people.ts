/** `platform people` and `platform members`: people, invitations, and roles in the account and in projects. */
import type { ProjectRole } from "../../domain/person/role.ts";
import type { Answer } from "../contract.ts";
import { endpoint } from "../endpoint/endpoint.ts";
import { usageFailure } from "../failure.ts";
import { time, safeLine } from "../terminal.ts";
import { parseWord, projectId } from "../words.ts";

const PROJECT_ROLES = ["viewer", "member", "owner"] as const satisfies readonly ProjectRole[];
const PERSON = "PERSON is the id from `platform people list`.";

type Person = Answer<"PATCH /v1/people/:id">;

const line = ({ id, name, role, deactivated_at: ended }: Person): string =>
  safeLine(`${id} ${name}: ${role}${ended === null ? "" : ", deactivated"}`);

export const peopleCommands = [
  endpoint("GET /v1/people", {
    name: "people list",
    about: "List the people of the account, newest first",
    rows: "people",
    columns: { PERSON: "id", ROLE: "role", SINCE: "created_at", DEACTIVATED: "deactivated_at", NAME: "name" },
    none: "No people.",
  }),
  endpoint("POST /v1/invitations", {
    name: "people invite",
    about: "Invite a person. Prints a link that works once, within seven days",
    takes: ["NAME"],
    options: {
      role: { value: "ROLE", about: "In the account: member (default) or owner" },
      in: { value: "PROJECT", about: "Also give a role in this project", sets: null },
      as: { value: "ROLE", about: "The role there: viewer, member or owner", sets: null },
    },
    sends: ({ options }) => {
      const role = parseWord(options.as, PROJECT_ROLES, "--as");
      if (options.in === undefined && role === undefined) return {};
      if (options.in === undefined || role === undefined) throw usageFailure("Give --in and --as together.");
      return { payload: { projects: [{ project_id: projectId(options.in, "--in"), role }] } };
    },
    shows: ({ id, expires_at: until, url }, { note }) => {
      note(`Invitation ${id}, until ${time(until)}. Send this link to the person:`);
      return safeLine(url);
    },
  }),
  endpoint("GET /v1/invitations", {
    name: "people invitations",
    about: "List the invitations that can still be accepted",
    rows: "invitations",
    columns: {
      INVITATION: "id",
      ROLE: "role",
      EXPIRES: "expires_at",
      PROJECTS: ({ projects }) => projects.length,
      NAME: "name",
    },
    none: "No open invitations.",
  }),
  endpoint("DELETE /v1/invitations/:id", {
    name: "people revoke",
    about: "Revoke an invitation. Its link stops working at once",
    takes: ["INVITATION"],
    done: "revoked",
  }),
  endpoint("PATCH /v1/people/:id", {
    name: "people role",
    about: "Make a person an owner or a member of the account",
    takes: ["PERSON", "ROLE"],
    notes: PERSON,
    shows: line,
  }),
  endpoint("POST /v1/people/:id/deactivate", {
    name: "people deactivate",
    about: "End a person's tokens and sessions. Her work and her name stay",
    asks: "End the person's tokens and sessions?",
    takes: ["PERSON"],
    notes: PERSON,
    shows: line,
  }),
  endpoint("POST /v1/people/:id/reactivate", {
    name: "people reactivate",
    about: "Give a deactivated person her roles back. She needs a new token",
    takes: ["PERSON"],
    notes: PERSON,
    shows: line,
  }),
  endpoint("GET /v1/projects/:pid/members", {
    name: "members list",
    about: "List the people who have a role in a project",
    rows: "members",
    columns: {
      PERSON: ({ user }) => user.id,
      ROLE: "role",
      OWN: "own_role",
      NAME: ({ user }) => user.name,
    },
    none: "No members.",
  }),
  endpoint("PUT /v1/projects/:pid/members/:id", {
    name: "members set",
    about: "Give a person a role in a project: viewer, member or owner",
    takes: ["PERSON", "ROLE"],
    notes: PERSON,
    shows: (_, { given }) => `${given.PERSON} ${given.ROLE}`,
  }),
  endpoint("DELETE /v1/projects/:pid/members/:id", {
    name: "members remove",
    about: "Remove a person's own role in a project. The project's default role stays",
    takes: ["PERSON"],
    notes: PERSON,
    done: "removed",
  }),
];
