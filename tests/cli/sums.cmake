pawl_cli_test(sums run_cases.py ${PROJECT_SOURCE_DIR}/tests/cli/cases/sums.cases)
