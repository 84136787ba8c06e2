# The ideal session on a terminal: the commands word for word, then their exit codes.
set -e -o pipefail
printf '%s\n' "$BURSAR_KEY" | bursar login "$BURSAR_URL"
unset BURSAR_KEY BURSAR_URL
bursar datasets
bursar show census
bursar price census count -w 'age>=65' --within 100
bursar ask census mean income --by region -e 0.05
if command -v jq > /dev/null; then
  bursar ask census count -w 'age>=65' -e 0.02 --json | jq .[0].value
else
  bursar ask census count -w 'age>=65' -e 0.02 --json
fi
bursar sql 'SELECT region, AVG(income) FROM census GROUP BY region' -e 0.1

code=0
timeout -s INT 5 bursar budget --watch || code=$?
test $code = 124 || test $code = 130

code=0
bursar ask census count -e 9 2> refused || code=$?
test $code = 3
cat refused
grep -q '^bursar: The question costs more than the budget of analyst-1 has left\.$' refused
grep -q '^        The most you can ask for now: --epsilon [0-9.]*$' refused

code=0
bursar ask census mean incme -e 0.1 2> typo || code=$?
test $code = 2
grep -q "^bursar: census has no column 'incme'; did you mean 'income'?$" typo
