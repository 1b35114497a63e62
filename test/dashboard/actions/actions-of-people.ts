/** The actions of an owner with people and their roles, for actions.real.test.ts. */
import type { Action } from "./actions.ts";
import { DEVICE_CODE, INVITATION_CODE, INVITATION_LINK } from "../fakes/fake-people.ts";
import { NEW_TOKEN } from "../fakes/fake-settings.ts";
import { PROJECT_ID } from "../samples/sample-project.ts";

const SETTINGS = `#/projects/${PROJECT_ID}/settings`;
const API = `/v1/projects/${PROJECT_ID}`;

const inModels = { hash: "#/models", shows: "form" };
const inPeople = { hash: "#/people", shows: "form" };
const inAccount = { hash: "#/account", shows: "form" };
const inSettings = { hash: SETTINGS, shows: "form" };

export const PEOPLE_ACTIONS: readonly Action[] = [
  {
    name: "adds a provider of models",
    ...inModels,
    does: async ({ write, choose, press }, page) => {
      await page.getByText("Add a provider", { exact: true }).click();
      await write("Name", "acme");
      await choose("Kind", "Google Gemini");
      await write("Key", "sk-1");
      await press("Try and save");
    },
    writes: `POST /v1/model-providers {"name":"acme","kind":"gemini","key":"sk-1","models":[]}`,
    tells: "acme accepts the key.",
  },
  {
    name: "deletes a provider of models",
    ...inModels,
    does: async ({ press }) => {
      await press("Delete: local");
      await press("Delete");
    },
    writes: "DELETE /v1/model-providers/mp-2 ",
    gone: "qwen3-coder",
  },
  {
    name: "sets a limit in dollars after the page has named the models without a price",
    ...inModels,
    does: async ({ write, press }, page) => {
      await write("Limit", "50");
      await press("Set the limit");
      await page.getByRole("dialog").getByText("No price is known for local/qwen3-coder:30b.").waitFor();
      await press("Set it anyway");
    },
    writes: `PUT /v1/spend-limits {"scope":"account","usd":50}`,
  },
  {
    name: "changes the price of a model",
    ...inModels,
    does: async ({ press }, page) => {
      await page.getByText("$5 input, $0.5 cached input, $25 output").waitFor();
      await press("Change: anthropic/claude-opus-4-6");
      const form = page.locator("form", { hasText: "Change the price" });
      await form.getByLabel("Output").fill("30");
      await press("Change the price");
    },
    writes: `PATCH /v1/model-providers/mp-1 {"prices":{"claude-opus-4-6":{"input":5,"cached":0.5,"output":30}}}`,
    tells: "claude-opus-4-6 has its price.",
  },
  {
    name: "saves an own subscription",
    ...inModels,
    does: async ({ write, press }, page) => {
      await page.getByText("Save your Claude subscription").click();
      await write("Token", "sk-ant-oat01-typed");
      await press("Save");
    },
    writes: `PUT /v1/me/subscriptions/claude-code {"content":"sk-ant-oat01-typed"}`,
    tells: "Your Claude subscription is saved.",
  },
  {
    name: "chooses what she is told by mail",
    ...inAccount,
    does: async ({ press }, page) => {
      const form = page.locator("form", { hasText: "When my agent is done" }).first();
      await form.getByLabel("When my agent is done").check();
      await form.getByRole("button", { name: "Save" }).click();
      await page.getByText("You get mail. Send yourself a test.").waitFor();
      await press("Send a test: by mail");
    },
    writes: `POST /v1/me/notices/mail/test `,
    tells: "The test was delivered. Answered 250 in 84 ms.",
  },
  {
    name: "adds her own chat",
    ...inAccount,
    does: async ({ write, press }) => {
      await write("Address", "https://hooks.slack.com/services/T000/B000/XXXX");
      await press("Add the chat");
    },
    writes: `PUT /v1/me/notices/chat {"tells":["asked","finished"],"url":"https://hooks.slack.com/services/T000/B000/XXXX","format":"slack"}`,
    tells: "Your chat is added. Send yourself a test.",
  },
  {
    name: "invites a person",
    ...inPeople,
    does: async ({ write, choose, press }) => {
      await write("Name", "Eve");
      await choose("Role in the account", "Owner");
      await press("Create the link");
    },
    writes: `POST /v1/invitations {"name":"Eve","role":"owner","projects":[]}`,
    tells: INVITATION_LINK,
  },
  {
    name: "revokes an invitation",
    ...inPeople,
    does: async ({ press }) => {
      await press("Revoke: Mia");
      await press("Revoke");
    },
    writes: "DELETE /v1/invitations/i ",
    gone: "Open invitations",
  },
  {
    name: "names the account",
    ...inAccount,
    does: async ({ write, press }) => {
      await write("Name of the account", "Greeters");
      await press("Save the names");
    },
    writes: `PATCH /v1/account {"name":"Greeters"}`,
    tells: "The names are saved.",
  },
  {
    name: "names herself",
    ...inAccount,
    does: async ({ write, press }) => {
      await write("Your name", "Ada");
      await press("Save the names");
    },
    writes: `PATCH /v1/people/u {"name":"Ada"}`,
    tells: "The names are saved.",
  },
  {
    name: "makes a member an owner",
    ...inPeople,
    does: async ({ press }) => {
      await press("Make owner: Vera");
      await press("Make owner");
    },
    writes: `PATCH /v1/people/u-vera {"role":"owner"}`,
    tells: "Vera is now owner of the account.",
  },
  {
    name: "deactivates a person",
    ...inPeople,
    does: async ({ press }) => {
      await press("Deactivate: Vera");
      await press("Deactivate");
    },
    writes: "POST /v1/people/u-vera/deactivate ",
    tells: "Vera is deactivated.",
  },
  {
    name: "reactivates a person",
    ...inPeople,
    does: ({ press }) => press("Reactivate: Karl"),
    writes: "POST /v1/people/u-karl/reactivate ",
    tells: "Karl has the former roles again",
  },
  {
    name: "approves a program's login",
    hash: "#/device",
    shows: "form",
    does: async ({ write, choose, press }) => {
      await write("Code", DEVICE_CODE);
      await press("Continue");
      await choose("Expires", "Never");
      await press("Approve");
    },
    writes: `POST /v1/device-logins/approve {"code":"${DEVICE_CODE}"}`,
    tells: "is signed in as you",
  },
  {
    name: "denies a program's login",
    hash: "#/device",
    shows: "form",
    does: async ({ write, press }) => {
      await write("Code", DEVICE_CODE);
      await press("Continue");
      await press("Deny");
    },
    writes: `POST /v1/device-logins/deny {"code":"${DEVICE_CODE}"}`,
    tells: "is denied",
  },
  {
    name: "signs another browser out",
    hash: "#/browsers",
    shows: ".row",
    does: ({ press }) => press("Sign out: Safari at 2001:db8::7"),
    writes: "DELETE /v1/me/browsers/b-2 ",
    tells: "The browser is signed out.",
  },
  {
    name: "removes an identity after a question",
    hash: "#/browsers",
    shows: ".row",
    does: async ({ press }) => {
      await press("Remove: mona at github");
      await press("Remove");
    },
    writes: "DELETE /v1/me/identities/i-2 ",
    tells: "The sign-in is removed.",
  },
  {
    name: "gives a person a role in a project",
    ...inSettings,
    does: async ({ choose, press }) => {
      await choose("Person", "Vera");
      await choose("Role", "Owner: also secrets, settings and members");
      await press("Set the role");
    },
    writes: `PUT ${API}/members/u-vera {"role":"owner"}`,
    tells: "The role is set.",
  },
  {
    name: "removes a person's own role in a project",
    ...inSettings,
    does: async ({ press }) => {
      await press("Remove: Vera");
      await press("Remove");
    },
    writes: `DELETE ${API}/members/u-vera `,
    tells: "The own role of Vera was removed.",
  },
  {
    name: "hides a project from others, keeps merging for owners and demands approvals",
    ...inSettings,
    does: async ({ choose, write, press }) => {
      await choose("Default role", "No role: the project is hidden");
      await choose("Who may merge", "Only owners");
      await write("Approvals before a merge", "2");
      await press("Save the roles");
    },
    writes: `PATCH ${API} {"default_role":null,"merge_role":"owner","approvals_required":2}`,
    tells: "The roles are saved.",
  },
  {
    name: "accepts an invitation, and the code leaves the address",
    hash: `#/join/${INVITATION_CODE}`,
    shows: "form",
    does: async ({ write, press }) => {
      await write("Your name", "Mia");
      await press("Accept the invitation");
    },
    tells: NEW_TOKEN,
    leads: "#/joined",
  },
];
