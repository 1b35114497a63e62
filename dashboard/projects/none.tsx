/** What a person without a project sees, on the first page and in the list. */
import { Empty } from "../ui/parts.tsx";

export const NoProjects = () => (
  <Empty title="No projects yet.">
    A project has one repository. Agents work on branches of it.
    <span className="empty-action">
      <a className="button primary" href="#/new">
        Connect a repository
      </a>
    </span>
  </Empty>
);
