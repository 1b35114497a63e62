/** Examples of people, invitations and roles in projects. */
import type { OperationExample } from "./example.ts";
import { BEGAN, ENDS, PROJECT, USER } from "./records.ts";

const person = { id: USER, name: "Mia", role: "member", created_at: BEGAN, deactivated_at: null };
const invitation = {
  id: "019a7c42-0c4d-7e3b-8a6f-1b2c3d4e5f21",
  name: "Mia",
  role: "member",
  projects: [{ project_id: PROJECT, role: "owner" }],
  created_by: USER,
  created_at: BEGAN,
  expires_at: ENDS,
};

export const PEOPLE_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  "people.list": {
    summary: "List the people of the account, newest first.",
    response: { people: [person], next_cursor: null },
  },
  "people.update": {
    summary: "Rename a person, or change her role in the account.",
    request: { role: "owner" },
    response: { ...person, role: "owner" },
  },
  "people.updateAccount": {
    summary: "Name the account. People see the name in invitations and on the account's page.",
    request: { name: "Greeters" },
  },
  "people.deactivate": {
    summary: "Deactivate a person: her tokens and sessions end, her work stays.",
    response: { ...person, deactivated_at: ENDS },
  },
  "people.reactivate": {
    summary: "Give a deactivated person her roles back. She needs a new token.",
    response: person,
  },
  "people.invitations": {
    summary: "List the invitations that can still be accepted, newest first.",
    response: { invitations: [invitation], next_cursor: null },
  },
  "people.invite": {
    summary: "Invite a person with a link that works once, within seven days.",
    request: { name: "Mia", projects: [{ project_id: PROJECT, role: "owner" }] },
    response: { ...invitation, url: "http://127.0.0.1:8080/#/join/6f1d2c" },
  },
  "people.revoke": { summary: "Revoke an invitation." },
  "people.members": {
    summary: "List the people who have a role in a project.",
    response: { members: [{ user: person, role: "owner", own_role: "owner" }] },
  },
  "people.grant": {
    summary: "Give a person a role in a project.",
    request: { role: "viewer" },
  },
  "people.revokeGrant": {
    summary: "Remove a person's own role in a project. The project's default role stays.",
  },
};
