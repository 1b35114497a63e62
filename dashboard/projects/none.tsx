/** What a person without a project sees, on the first page and in the list. */
import type { Answer } from "../../src/cli/contract.ts";
import { Empty } from "../ui/parts.tsx";

export const NoProjects = ({ me }: { readonly me: Answer<"GET /v1/me"> | null }) => (
  <>
    <Empty title="No projects yet.">
      A project has one repository. Agents work on branches of it.
      <span className="empty-action">
        <a className="button primary" href="#/new">
          Create a project
        </a>
      </span>
    </Empty>
    {me?.user.role === "owner" && (
      <p className="quiet">
        You are “{me.user.name}”, an owner of the account “{me.account.name}”.{" "}
        <a href="#/account">Change these names</a>
      </p>
    )}
  </>
);
