/** Work that an agent leaves in its workspace, of each kind that a save has, and how a later sandbox is looked at. */

interface Kind {
  readonly name: string;
  /** Shell lines that make it. Those of later kinds follow in the same workspace. */
  readonly work: string;
  /** A shell condition that holds if it exists as it was. */
  readonly check: string;
}

export const KINDS: readonly Kind[] = [
  {
    name: "an amended commit",
    work: `echo pushed > pushed.txt && git add . && git commit -qm Pushed && git push -q origin HEAD
echo amended >> pushed.txt && git commit -qam Amended --amend`,
    check: `[ "$(cat pushed.txt)" = "$(printf 'pushed\\namended')" ] && git log --branches --format=%s | grep -qx Amended`,
  },
  {
    name: "another branch",
    work: "git checkout -q -b aside && echo aside > aside.txt && git add . && git commit -qm Aside && git checkout -q -",
    check: "git show aside:aside.txt | grep -qx aside",
  },
  {
    name: "the stash",
    work: "echo stashed > stashed.txt && git add . && git stash -q",
    check: "git stash show --include-untracked --name-only 'stash@{0}' | grep -qx stashed.txt",
  },
  {
    name: "staged content that a filter keeps elsewhere",
    work: `printf '*.bin filter=pointer\\n' > .gitattributes
git config filter.pointer.clean 'echo a pointer' && git config filter.pointer.smudge cat
printf 'large content' > media.bin && git add .gitattributes media.bin`,
    check: `[ "$(cat media.bin)" = 'large content' ] && git diff --cached --name-only | grep -qx media.bin`,
  },
  {
    name: "attributes that git refuses",
    work: "mkdir -p vendor lib && printf '*.c %03000d\\n' 0 > vendor/.gitattributes",
    check: "grep -q 000 vendor/.gitattributes",
  },
  {
    name: "a repository inside",
    work: "(cd lib && git init -q && echo inside > inside.txt && git add . && git commit -qm Inside && echo more > more.txt)",
    check: `[ "$(cd lib && git log --format=%s)" = Inside ] && grep -qx more lib/more.txt && grep -qx inside lib/inside.txt`,
  },
  { name: "a new file", work: "echo secretly > .env", check: "grep -qx secretly .env" },
  {
    name: "ends of lines",
    work: "printf 'line\\r\\n' > crlf.txt",
    check: "printf 'line\\r\\n' | cmp -s - crlf.txt",
  },
  { name: "a link", work: "ln -s crlf.txt link", check: `[ "$(readlink link)" = crlf.txt ]` },
  {
    name: "an empty file with its mode",
    work: ": > empty && chmod 755 empty",
    check: "[ -x empty ] && [ ! -s empty ]",
  },
  {
    name: "no ignored file",
    work: "mkdir kept-out && echo kept-out > .gitignore && echo no > kept-out/no",
    check: "[ ! -e kept-out ]",
  },
];

/** Work of each kind, not pushed except for the first commit. */
export const WORK = ["set -e", ...KINDS.map(({ work }) => work)].join("\n");

/** Prints a line `held: …` or `lost: …` for each kind, and fails if one is lost. */
export const CHECK = [
  "all=0",
  ...KINDS.map(
    ({ name, check }) => `if ${check}; then echo 'held: ${name}'; else echo 'lost: ${name}'; all=1; fi`,
  ),
  "[ $all = 0 ]",
].join("\n");
