/** The file that lists the saved parts other than files, and how to restore them. */

/** Which parts exist. */
export interface RestTrees {
  readonly refs: boolean;
  readonly stashes: boolean;
  readonly index: boolean;
  readonly conflicts: boolean;
  readonly operation: boolean;
  readonly worktrees: boolean;
}

const REFS = `
Branches and tags

The file "refs" lists them with their ids. These commands create each of them again below refs/saved/:

    for tag in $(git ls-tree --name-only "$rest" | sed -n 's/^tag-//p'); do
      git cat-file blob "$rest:tag-$tag" | git hash-object -w -t tag --stdin
    done
    git cat-file blob "$rest:refs" | while read -r id ref; do
      git update-ref "refs/saved/\${ref#refs/}" "$id"
    done
`;

const STASHES = `
Stashes

These commands add them to the existing stashes:

    git cat-file blob "$rest:refs" | sed -n 's|^\\([0-9a-f]*\\) refs/stash/.*|\\1|p' | while read -r id; do
      git stash store -m "$(git show -s --format=%s "$id")" "$id"
    done
`;

const INDEX_HEAD = `
The index

This command replaces the index. It does not change files:

`;
const INDEX = `    git read-tree "$rest:index"
`;
const CONFLICTS = `    for stage in 1 2 3; do
      git ls-tree -r "$rest:conflicts-$stage" 2> /dev/null |
        sed "s/^\\([0-9]*\\) blob \\([0-9a-f]*\\)/\\1 \\2 $stage/" | git update-index --index-info
    done
`;

const OPERATION = `
An operation in progress

The directory "state" has git's own files of a merge, rebase, cherry-pick, revert or bisection. To continue it, create its
branch again, check out the commit that HEAD was on, restore files and index, and then run:

    git archive "$rest:state" | tar -x -C "$(git rev-parse --absolute-git-dir)"
`;

const WORKTREES = `
Other worktrees

The file "worktrees" lists them. worktree-1 has the files of the first, worktree-1-index its index. This command writes its
files into the current directory:

    git archive "$rest:worktree-1" | tar -x
`;

/** Commands are in lines that begin with four blanks. They expect the commit's id in \`rest\`. */
export const restReadme = (session: string, trees: RestTrees): string =>
  [
    `Session ${session} had this in its repository, besides its files, when its sandbox ended. The commands expect the id of\n` +
      "this commit in the variable rest. The saved commit's message sets it.\n",
    trees.refs ? REFS : "",
    trees.stashes ? STASHES : "",
    trees.index || trees.conflicts ? INDEX_HEAD + (trees.index ? INDEX : "") : "",
    trees.conflicts ? CONFLICTS : "",
    trees.operation ? OPERATION : "",
    trees.worktrees ? WORKTREES : "",
  ].join("");
