-- Run by MySQL and MariaDB at each start. The tests make databases of their own, hence the rights on all of them.
CREATE DATABASE IF NOT EXISTS idem;
CREATE USER IF NOT EXISTS 'idem'@'%' IDENTIFIED BY 'idem';
GRANT ALL ON *.* TO 'idem'@'%' WITH GRANT OPTION;
